package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.output.OutputLockedException;

/** S3A, brought by {@code --packages} as its users bring it, against an S3 server on loopback. */
class S3IT {
  private static final String ROOT = "s3a://" + S3Server.BUCKET;
  private static final String INDEX = "model.safetensors.index.json";
  private static final String RECORDS = "out/_sparkfp4/shards/";

  @TempDir
  private static Path folder;

  private static S3Server s3;

  @BeforeAll
  static void start() throws Exception {
    s3 = S3Server.start();
    ClusterInputs.make(folder);
    for (String name : ClusterInputs.FOLDERS) {
      s3.upload(folder.resolve(name));
    }
  }

  @AfterAll
  static void stop() throws IOException {
    if (s3 != null) {
      s3.close();
    }
  }

  /** A run is killed, a second session finishes it, and does all else that works on files. */
  @Test
  void objectsAreWrittenOnceUnderTheirNames() throws Exception {
    String[] quantize = ClusterInputs.quantize(ROOT, "out");
    try (RunningSubmit running = submit().conf("spark.fp4.cpu.tier", "java").start(quantize)) {
      running.awaitThat("two records", () -> names(RECORDS).size() >= 2);
      running.kill();
    }

    Map<String, String> finished = shards(s3.list("out/"));
    finished.keySet().retainAll(recorded(finished.keySet()));
    assertThat(finished).hasSizeGreaterThanOrEqualTo(2);
    assertThat(names("out/")).doesNotContain(INDEX).noneMatch(name -> name.contains("attempts/"));

    SparkSubmitResult result = submit().program(CommandSeries.class).run(series(
        quantize, ClusterInputs.keys(ROOT, "cache"), ClusterInputs.calibrate(ROOT, "statistics"),
        new String[] {"verify", "--source", ROOT + "/source", "--quantized", ROOT + "/out", "--sample", "2"},
        new String[] {"verify-keys", "--source", ROOT + "/keys", "--cache", ROOT + "/cache"},
        quantize));

    assertThat(result.status()).as(result.out() + result.err()).isZero();
    assertThat(result.err()).contains("Resuming: ", ROOT + "/out is complete: nothing to do");
    assertThat(shards(s3.list("out/"))).containsAllEntriesOf(finished).hasSizeGreaterThan(finished.size());
    assertThat(names("out/")).contains(INDEX).noneMatch(name -> name.contains("/"));
    Outputs.assertSameTensors(folder.resolve("undisturbed"), s3.download("out/", folder.resolve("copy-of-out")));
    Outputs.assertSameTensors(folder.resolve("cache"), s3.download("cache/", folder.resolve("copy-of-cache")));
    Outputs.assertSameTensors(
        folder.resolve("statistics"), s3.download("statistics/", folder.resolve("copy-of-statistics")));
  }

  /** Credentials by the usual chain: here, from the environment. */
  private static SparkSubmit submit() {
    return SparkSubmit.local(2)
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .conf("spark.jars.packages", "org.apache.hadoop:hadoop-aws:3.4.2,"
            + "software.amazon.awssdk:s3-transfer-manager:2.29.52,software.amazon.awssdk:sts:2.29.52,"
            + "software.amazon.awssdk:apache-client:2.29.52,software.amazon.awssdk:netty-nio-client:2.29.52")
        .conf("spark.jars.excludes", "software.amazon.awssdk:bundle")
        .conf("spark.jars.ivy", Path.of(System.getProperty("sparkfp4.root"), "target/ivy").toString())
        .conf("spark.hadoop.fs.s3a.endpoint", s3.endpoint())
        .conf("spark.hadoop.fs.s3a.endpoint.region", "us-east-1")
        .conf("spark.hadoop.fs.s3a.path.style.access", "true");
  }

  private static String[] series(String[]... commands) {
    List<String> all = new ArrayList<>();
    for (String[] command : commands) {
      if (!all.isEmpty()) {
        all.add(CommandSeries.THEN);
      }

      all.addAll(Arrays.asList(command));
    }

    return all.toArray(String[]::new);
  }

  /** Those shards of a run that is not finished that have a record, by the numbers in their names. */
  private static List<String> recorded(Set<String> shards) {
    Set<String> records = names(RECORDS);
    return shards.stream()
        .filter(name -> records.contains(
            "%05d.json".formatted(Integer.parseInt(name.replaceAll("model-(\\d+)-.*", "$1")) - 1)))
        .toList();
  }

  private static Set<String> names(String prefix) {
    try {
      return s3.list(prefix).keySet();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Map<String, String> shards(Map<String, String> objects) {
    Map<String, String> shards = new TreeMap<>(objects);
    shards.keySet().removeIf(name -> !name.matches("model-.*\\.safetensors"));
    return shards;
  }

  @Test
  void ofManyRunsAtOnceOneHoldsTheLock() throws Exception {
    try (URLClassLoader connector = new URLClassLoader(urls(), S3IT.class.getClassLoader())) {
      FileSystem fs = FileSystem.newInstance(URI.create(ROOT), configuration(connector));
      ExecutorService pool = Executors.newFixedThreadPool(4);
      try {
        for (int round = 0; round < 4; round++) {
          org.apache.hadoop.fs.Path lock =
              new org.apache.hadoop.fs.Path(ROOT + "/locked-" + round + "/_sparkfp4/lock");
          List<OutputLock> held = new ArrayList<>();
          for (Future<OutputLock> taken : pool.invokeAll(Collections.nCopies(4, attempt(fs, lock)))) {
            held.add(taken.get());
          }

          held.removeIf(Objects::isNull);
          assertThat(held).hasSize(1);
          held.get(0).requireHeld();
          held.get(0).close();
          OutputLock.acquire(fs, lock).close();
        }
      } finally {
        pool.shutdownNow();
        fs.close();
      }
    }
  }

  /** A run that finds the lock taken gives none. */
  private static Callable<OutputLock> attempt(FileSystem fs, org.apache.hadoop.fs.Path lock) {
    return () -> {
      try {
        return OutputLock.acquire(fs, lock);
      } catch (OutputLockedException e) {
        return null;
      }
    };
  }

  private static Configuration configuration(ClassLoader connector) {
    Configuration configuration = new Configuration();
    configuration.setClassLoader(connector);
    configuration.set("fs.s3a.access.key", "test");
    configuration.set("fs.s3a.secret.key", "test");
    configuration.set("fs.s3a.endpoint", s3.endpoint());
    configuration.set("fs.s3a.endpoint.region", "us-east-1");
    configuration.setBoolean("fs.s3a.path.style.access", true);
    return configuration;
  }

  private static URL[] urls() {
    return Arrays.stream(ClassPath.required("s3a").split(File.pathSeparator))
        .map(S3IT::url)
        .toArray(URL[]::new);
  }

  private static URL url(String jar) {
    try {
      return Path.of(jar).toUri().toURL();
    } catch (MalformedURLException e) {
      throw new IllegalStateException(e);
    }
  }
}

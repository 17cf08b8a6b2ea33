package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A standalone cluster of three workers and an HDFS, all of it processes of their own on loopback. */
class ClusterIT {
  @TempDir
  private static java.nio.file.Path folder;

  private static HdfsCluster hdfs;
  private static StandaloneCluster cluster;
  private static FileSystem fs;

  @BeforeAll
  static void start() throws Exception {
    hdfs = HdfsCluster.start();
    cluster = StandaloneCluster.start(3);
    fs = hdfs.fs();
    ClusterInputs.make(folder);
    for (String name : ClusterInputs.FOLDERS) {
      fs.copyFromLocalFile(new Path(folder.resolve(name).toUri()), new Path("/" + name));
    }
  }

  @AfterAll
  static void stop() throws IOException {
    if (cluster != null) {
      cluster.close();
    }

    if (hdfs != null) {
      hdfs.close();
    }
  }

  @Test
  void runKilledInClientModeIsResumedInClusterMode() throws Exception {
    String[] command = ClusterInputs.quantize(hdfs.path(""), "out");
    Path output = new Path("/out");
    // with the reference's arithmetic a shard takes long enough to be interrupted; the bytes are the same
    try (RunningSubmit running = SparkSubmit.on(cluster).conf("spark.fp4.cpu.tier", "java").start(command)) {
      running.awaitThat("two executors and two shards", () -> cluster.executors().size() >= 2 && records(output) >= 2);
      SparkSubmitResult second = new InProcess().run(command);
      assertThat(second.status()).isEqualTo(1);
      assertThat(second.err()).startsWith("Cannot write to hdfs://").contains("another run writes there (process ");
      running.kill();
    }

    Map<String, Long> finished = shards(output);
    assertThat(fs.exists(new Path(output, "model.safetensors.index.json"))).isFalse();
    SparkSubmitResult resumed = SparkSubmit.within(cluster).run(command);

    assertThat(resumed.status()).as(resumed.err() + cluster.driverErrors()).isZero();
    assertThat(cluster.driverErrors()).contains("Resuming: ");
    assertThat(shards(output)).containsAllEntriesOf(finished).hasSizeGreaterThan(finished.size());
    assertThat(fs.exists(new Path(output, "_sparkfp4"))).isFalse();
    assertSame("undisturbed", "out");
    SparkSubmitResult verified = new InProcess().run("verify", "--source", hdfs.path("/source"), "--quantized",
        hdfs.path("/out"), "--sample", "2", "--report", hdfs.path("/report/verify.html"));
    assertThat(verified.status()).as(verified.out() + verified.err()).isZero();
    assertThat(fs.exists(new Path("/report/verify.parquet"))).isTrue();
  }

  /** Standalone's spark-submit ends with 0 whatever becomes of a driver that it hands to a worker: conf/README.md. */
  @Test
  void failureInClusterModeIsInTheDriversLog() throws Exception {
    SparkSubmitResult result = SparkSubmit.within(cluster).run("inspect", hdfs.path("/nothing"));

    assertThat(result.status()).isZero();
    assertThat(cluster.driverErrors()).contains("Invalid checkpoint " + hdfs.path("/nothing"));
  }

  @Test
  void keysAndStatisticsAreThoseOfThisMachine() throws Exception {
    for (String[] command : new String[][] {
      ClusterInputs.keys(hdfs.path(""), "cache"), ClusterInputs.calibrate(hdfs.path(""), "statistics"),
      {"verify-keys", "--source", hdfs.path("/keys"), "--cache", hdfs.path("/cache")}
    }) {
      SparkSubmitResult result = new InProcess().run(command);
      assertThat(result.status()).as(result.out() + result.err()).isZero();
    }

    assertSame("cache", "cache");
    assertSame("statistics", "statistics");
  }

  /** Asserts that a folder there has the safetensors files of one here. */
  private static void assertSame(String expected, String there) throws IOException {
    java.nio.file.Path copy = folder.resolve("copy-of-" + there);
    fs.copyToLocalFile(false, new Path("/" + there), new Path(copy.toUri()), true);
    Outputs.assertSameTensors(folder.resolve(expected), copy);
  }

  private static Map<String, Long> shards(Path output) throws IOException {
    Map<String, Long> shards = new TreeMap<>();
    for (FileStatus file : fs.listStatus(output, path -> path.getName().endsWith(".safetensors"))) {
      shards.put(file.getPath().getName(), file.getModificationTime());
    }

    return shards;
  }

  private static int records(Path output) {
    try {
      Path records = new Path(output, "_sparkfp4/shards");
      return fs.exists(records) ? fs.listStatus(records, path -> path.getName().matches("\\d+\\.json")).length : 0;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}

package org.sparkfp4.jobs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs the shaded jar as a user does: by SparkSubmit, in a JVM of its own, with the launcher's flags and conf.
 *
 * <pre>{@code
 * SparkSubmitResult result = SparkSubmit.local(2).conf("spark.fp4.read", "pread").run("inspect", folder.toString());
 * }</pre>
 */
final class SparkSubmit {
  static final Path ROOT = Path.of(System.getProperty("sparkfp4.root")).normalize();
  private static final Path TARGET = ROOT.resolve("jobs/target");

  private final Map<String, String> conf = new LinkedHashMap<>();
  private final Map<String, String> environment = new LinkedHashMap<>();
  private String heap = "1g";
  private Class<?> program;
  private String spark;

  private SparkSubmit(String master) {
    conf("spark.master", master);
    env("SPARK_LOCAL_IP", "127.0.0.1");
    env("SPARK_CONF_DIR", ROOT.resolve("conf").toString());
  }

  /** Driver and tasks in one JVM, on {@code cores} threads. */
  static SparkSubmit local(int cores) {
    return new SparkSubmit("local[" + cores + "]");
  }

  /** A driver and executors in JVMs of their own, one core and 1 GiB each. */
  static SparkSubmit localCluster(int executors) {
    SparkSubmit submit =
        new SparkSubmit("local-cluster[" + executors + ",1,1024]").conf("spark.executor.memory", "1g");
    homeOfExecutors().forEach(submit::env);
    return submit;
  }

  /** On a cluster of its own, whose workers have an executor each. */
  static SparkSubmit on(StandaloneCluster cluster) {
    return new SparkSubmit(cluster.master()).conf("spark.executor.memory", "1g");
  }

  /** In cluster deploy mode: a worker runs the driver, and what is started here waits for its end. */
  static SparkSubmit within(StandaloneCluster cluster) {
    return on(cluster)
        .conf("spark.submit.deployMode", "cluster")
        .conf("spark.standalone.submit.waitAppCompletion", "true")
        .conf("spark.driver.memory", "512m");
  }

  /** The environment in which workers start executors. */
  static Map<String, String> homeOfExecutors() {
    return Map.of("SPARK_HOME", sparkHome().toString(), "SPARK_SCALA_VERSION", "2.13");
  }

  SparkSubmit conf(String key, String value) {
    conf.put(key, value);
    return this;
  }

  SparkSubmit env(String name, String value) {
    environment.put(name, value);
    return this;
  }

  /** Another version of Spark in place of the one that the product is built for. */
  SparkSubmit spark(String version) {
    spark = ClassPath.required("spark-" + version);
    return this;
  }

  /** The driver's {@code -Xmx}; 1g unless said. */
  SparkSubmit heap(String size) {
    heap = size;
    return this;
  }

  /** Runs a test's own main, in place of Main. */
  SparkSubmit program(Class<?> main) {
    program = main;
    String jar = System.getProperty("sparkfp4.jar");
    conf.merge("spark.jars", jar, (others, ours) -> others + "," + ours);
    return this;
  }

  /** Runs a command of Main to its end. */
  SparkSubmitResult run(String... arguments) {
    try (RunningSubmit running = start(arguments)) {
      return running.await();
    }
  }

  /** Starts a command of Main; closing the result ends the driver and its executors. */
  RunningSubmit start(String... arguments) {
    List<String> command = spark == null ? java(heap) : java(heap, List.of(), spark);
    command.addAll(List.of("org.apache.spark.deploy.SparkSubmit", "--properties-file",
        ROOT.resolve("conf/spark-defaults-local.conf").toString()));
    conf.forEach((key, value) -> command.addAll(List.of("--conf", key + "=" + value)));
    command.addAll(program == null
        ? List.of("--class", "org.sparkfp4.jobs.Main", System.getProperty("sparkfp4.jar"))
        : List.of("--class", program.getName(), System.getProperty("sparkfp4.test.jar")));
    command.addAll(List.of(arguments));
    return RunningSubmit.start(command, environment);
  }

  /** The command that starts a JVM of Spark's, less the class. */
  static List<String> java(String heap) {
    return java(heap, classArchive(), classPath());
  }

  private static List<String> java(String heap, List<String> archive, String classPath) {
    List<String> command = new ArrayList<>(List.of(
        Path.of(System.getProperty("java.home"), "bin/java").toString(), "-Xmx" + heap, "-XX:+UseParallelGC"));
    jvmFlags().stream().filter(flag -> !flag.startsWith("--add-modules")).forEach(command::add); // as the launcher does
    command.addAll(archive);
    command.addAll(List.of(
        "-Dlog4j2.configurationFile=" + ROOT.resolve("conf/log4j2.properties"), "-cp", classPath));
    return command;
  }

  static List<String> jvmFlags() {
    return List.of(read(TARGET.resolve("spark.jvmflags")).split("\\s+"));
  }

  /** The launcher's archive of Spark's classes where there is one: it halves the time of a start. */
  private static List<String> classArchive() {
    Path archive = ROOT.resolve("target/spark.jsa");
    return Files.exists(archive)
        ? List.of("-XX:SharedArchiveFile=" + archive, "-Xlog:disable", "-Xlog:all=error:stderr")
        : List.of();
  }

  private static String classPath() {
    return read(TARGET.resolve("spark.classpath"));
  }

  /** A SPARK_HOME as far as executors need one: the jars, linked. */
  private static Path sparkHome() {
    Path home = TARGET.resolve("spark-home");
    try {
      Files.createDirectories(home.resolve("jars"));
      for (String jar : classPath().split(":")) {
        link(home.resolve("jars").resolve(Path.of(jar).getFileName()), Path.of(jar));
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot lay out " + home, e);
    }

    return home;
  }

  private static void link(Path link, Path jar) throws IOException {
    try {
      Files.createSymbolicLink(link, jar);
    } catch (FileAlreadyExistsException e) {
      // of an earlier test
    }
  }

  private static String read(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + file + ": run mvn package first", e);
    }
  }
}

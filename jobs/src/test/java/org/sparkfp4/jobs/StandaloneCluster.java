package org.sparkfp4.jobs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Spark's own standalone cluster, a JVM for the master and one a worker, of one core and 1 GiB. Each worker has a
 * loopback address of its own, so that Spark takes it for a host: it begins no task again on the host that has it.
 */
final class StandaloneCluster implements AutoCloseable {
  private final Path folder;
  private final String master;
  private final List<Process> processes = new ArrayList<>();

  private StandaloneCluster(Path folder, int port) {
    this.folder = folder;
    this.master = "spark://127.0.0.1:" + port;
  }

  static StandaloneCluster start(int workers) throws IOException {
    StandaloneCluster cluster = new StandaloneCluster(Files.createTempDirectory("standalone-"), FreePort.find());
    String port = cluster.master.substring(cluster.master.lastIndexOf(':') + 1);
    cluster.run("127.0.0.1", "master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0");
    for (int worker = 1; worker <= workers; worker++) {
      String address = "127.0.0." + worker;
      cluster.run(address, "worker.Worker", "--host", address, "--webui-port", "0", "--cores", "1", "--memory", "1g",
          "--work-dir", cluster.folder.resolve(address).toString(), cluster.master);
    }

    return cluster;
  }

  private void run(String address, String name, String... arguments) throws IOException {
    List<String> command = SparkSubmit.java("512m");
    command.add("org.apache.spark.deploy." + name);
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(folder.resolve(name + "-" + address + ".log").toFile());
    builder.environment().put("SPARK_LOCAL_IP", address);
    SparkSubmit.homeOfExecutors().forEach(builder.environment()::put);
    processes.add(builder.start());
  }

  /** What the drivers that workers ran in cluster deploy mode wrote to standard error. */
  String driverErrors() throws IOException {
    StringBuilder errors = new StringBuilder();
    try (Stream<Path> files = Files.find(folder, 3, (path, attributes) -> path.endsWith("stderr")
        && path.getParent().getFileName().toString().startsWith("driver-"))) {
      for (Path file : files.toList()) {
        errors.append(Files.readString(file));
      }
    }

    return errors.toString();
  }

  /** What {@code spark.master} is on this cluster. */
  String master() {
    return master;
  }

  /** The executors' JVMs that live now. */
  List<ProcessHandle> executors() {
    return processes.stream().flatMap(RunningSubmit::executors).toList();
  }

  @Override
  public void close() {
    List<ProcessHandle> all = new ArrayList<>(executors());
    // workers first: they would start executors again
    processes.forEach(process -> all.add(0, process.toHandle()));
    all.forEach(ProcessHandle::destroyForcibly);
    all.forEach(process -> process.onExit().join());
    FileTree.delete(folder);
  }
}

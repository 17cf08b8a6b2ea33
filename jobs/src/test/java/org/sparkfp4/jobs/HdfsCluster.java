package org.sparkfp4.jobs;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/** Hadoop's own small cluster in a JVM of its own: a NameNode and a DataNode, on loopback. */
final class HdfsCluster implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofMinutes(2);

  private final Path folder;
  private final Process process;
  private final String root;

  private HdfsCluster(Path folder, Process process, String root) {
    this.folder = folder;
    this.process = process;
    this.root = root;
  }

  static HdfsCluster start() throws IOException, InterruptedException {
    String classPath = ClassPath.required("hdfs");
    Path folder = Files.createTempDirectory("hdfs-");
    Path details = folder.resolve("details.json");
    Process process = new ProcessBuilder(List.of(
            Path.of(System.getProperty("java.home"), "bin/java").toString(), "-Xmx256m", "-XX:TieredStopAtLevel=1",
            "-cp", classPath, "org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1",
            "-D", "dfs.replication=1", "-writeDetails", details.toString()))
        .directory(folder.toFile())
        .redirectErrorStream(true)
        .redirectOutput(folder.resolve("log").toFile())
        .start();
    try {
      Instant limit = Instant.now().plus(LIMIT);
      while (!Files.exists(details) || !Files.readString(details).endsWith("}")) {
        if (!process.isAlive() || Instant.now().isAfter(limit)) {
          throw new AssertionError("HDFS did not start: " + Files.readString(folder.resolve("log")));
        }

        Thread.sleep(50);
      }

      int port = new ObjectMapper().readTree(details.toFile()).path("namenode_port").asInt();
      return new HdfsCluster(folder, process, "hdfs://127.0.0.1:" + port);
    } catch (IOException | RuntimeException | Error | InterruptedException e) {
      process.destroyForcibly();
      throw e;
    }
  }

  /** A path on the cluster; {@code name} begins with a slash. */
  String path(String name) {
    return root + name;
  }

  FileSystem fs() throws IOException {
    return FileSystem.get(URI.create(root), new Configuration());
  }

  @Override
  public void close() throws IOException {
    fs().close();
    process.destroyForcibly();
    process.onExit().join();
    FileTree.delete(folder);
  }
}

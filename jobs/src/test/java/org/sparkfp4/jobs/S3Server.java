package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** An S3 server on loopback, a process of its own, with a bucket {@value #BUCKET}. */
final class S3Server implements AutoCloseable {
  static final String BUCKET = "models";

  private static final Duration LIMIT = Duration.ofMinutes(1);
  private static final Pattern OBJECT =
      Pattern.compile("<Key>([^<]+)</Key><LastModified>([^<]+)</LastModified>");

  /** Without a name nobody may read what a client with one wrote; the signature is not looked at. */
  private static final String SOMEBODY =
      "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

  private final Process process;
  private final Path log;
  private final String endpoint;
  private final HttpClient http = HttpClient.newHttpClient();

  private S3Server(Process process, Path log, String endpoint) {
    this.process = process;
    this.log = log;
    this.endpoint = endpoint;
  }

  static S3Server start() throws IOException, InterruptedException {
    String port = Integer.toString(FreePort.find());
    Path log = Files.createTempFile("s3-", ".log");
    Process process = new ProcessBuilder(Python.required().module("moto.server", "-H", "127.0.0.1", "-p", port))
        .redirectErrorStream(true)
        .redirectOutput(log.toFile())
        .start();
    S3Server server = new S3Server(process, log, "http://127.0.0.1:" + port);
    server.makeBucket();
    return server;
  }

  private void makeBucket() throws IOException, InterruptedException {
    Instant limit = Instant.now().plus(LIMIT);
    while (true) {
      try {
        send(request("").PUT(BodyPublishers.noBody()));
        return;
      } catch (IOException e) {
        if (!process.isAlive() || Instant.now().isAfter(limit)) {
          close();
          throw e;
        }

        Thread.sleep(100);
      }
    }
  }

  String endpoint() {
    return endpoint;
  }

  /** Puts the files of a folder under its name. */
  void upload(Path folder) throws IOException, InterruptedException {
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        send(request("/" + folder.getFileName() + "/" + file.getFileName()).PUT(BodyPublishers.ofFile(file)));
      }
    }
  }

  /** Objects by name, less the prefix, each with the time when it was written. */
  Map<String, String> list(String prefix) throws IOException, InterruptedException {
    String query = "?list-type=2&prefix=" + URLEncoder.encode(prefix, StandardCharsets.UTF_8);
    String text = new String(send(request(query).GET()), StandardCharsets.UTF_8);
    assertThat(text).contains("<IsTruncated>false</IsTruncated>");
    Map<String, String> objects = new TreeMap<>();
    for (Matcher object = OBJECT.matcher(text); object.find(); ) {
      objects.put(object.group(1).substring(prefix.length()), object.group(2));
    }

    return objects;
  }

  /** Copies the objects directly below a prefix, such as {@code out/}, to a folder of this machine. */
  Path download(String prefix, Path folder) throws IOException, InterruptedException {
    Files.createDirectories(folder);
    for (String name : list(prefix).keySet()) {
      if (!name.isEmpty() && !name.contains("/")) {
        Files.write(folder.resolve(name), send(request("/" + prefix + name).GET()));
      }
    }

    return folder;
  }

  private HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create(endpoint + "/" + BUCKET + path)).header("Authorization", SOMEBODY);
  }

  private byte[] send(HttpRequest.Builder request) throws IOException, InterruptedException {
    HttpResponse<byte[]> response = http.send(request.build(), BodyHandlers.ofByteArray());
    assertThat(response.statusCode()).as(new String(response.body(), StandardCharsets.UTF_8)).isEqualTo(200);
    return response.body();
  }

  @Override
  public void close() throws IOException {
    process.destroyForcibly();
    process.onExit().join();
    Files.delete(log);
  }
}

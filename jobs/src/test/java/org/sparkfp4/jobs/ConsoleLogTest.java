package org.sparkfp4.jobs;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.URI;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.spark.network.server.TransportRequestHandler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/** What {@code conf/log4j2.properties} lets through to a person's terminal. */
@ResourceLock(Resources.SYSTEM_ERR)
class ConsoleLogTest {
  private static final URI CONFIGURATION = SparkSubmit.ROOT.resolve("conf/log4j2.properties").toUri();

  @Test
  void keepsQuietOfWordsToADriverThatHasEnded() {
    assertThat(console(TransportRequestHandler.class,
        "Error while invoking RpcHandler#receive() for one-way message from /127.0.0.1:46848.")).isEmpty();
  }

  @Test
  void tellsOfCallsThatSomebodyWaitsFor() {
    assertThat(console(TransportRequestHandler.class,
        "Error while invoking RpcHandler#receive() on RPC id 6448 from /127.0.0.1:46848"))
        .contains("ERROR TransportRequestHandler: Error while invoking RpcHandler#receive() on RPC id 6448");
  }

  private static String console(Class<?> speaker, String error) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream before = System.err;
    System.setErr(new PrintStream(bytes, true, UTF_8));
    try (LoggerContext context = new LoggerContext("console", null, CONFIGURATION)) {
      context.start();
      Logger logger = context.getLogger(speaker.getName());
      logger.error(error, new IllegalStateException("Could not find CoarseGrainedScheduler."));
    } finally {
      System.setErr(before);
    }

    return bytes.toString(UTF_8);
  }
}

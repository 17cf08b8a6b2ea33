package org.sparkfp4.jobs;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.URI;
import java.util.function.Consumer;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.spark.network.server.TransportRequestHandler;
import org.apache.spark.scheduler.TaskSchedulerImpl;
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

  @Test
  void saysNothingWhenItIsSilenced() {
    assertThat(console(TaskSchedulerImpl.class, "Exception in statusUpdate", context -> {}))
        .contains("ERROR TaskSchedulerImpl: Exception in statusUpdate");
    assertThat(console(TaskSchedulerImpl.class, "Exception in statusUpdate", Interruption::silenceConsole)).isEmpty();
    assertThat(console(Main.class, "a last word", Interruption::silenceConsole)).isEmpty();
  }

  private static String console(Class<?> speaker, String error) {
    return console(speaker, error, context -> {});
  }

  private static String console(Class<?> speaker, String error, Consumer<LoggerContext> before) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream err = System.err;
    System.setErr(new PrintStream(bytes, true, UTF_8));
    try (LoggerContext context = new LoggerContext("console", null, CONFIGURATION)) {
      context.start();
      before.accept(context);
      Logger logger = context.getLogger(speaker.getName());
      logger.error(error, new IllegalStateException("Could not find CoarseGrainedScheduler."));
    } finally {
      System.setErr(err);
    }

    return bytes.toString(UTF_8);
  }
}

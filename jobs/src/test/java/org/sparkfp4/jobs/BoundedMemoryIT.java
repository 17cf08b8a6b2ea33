package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.TestSpark;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** A run over ten times as many bytes as its heap has: what a process takes does not grow with the model. */
class BoundedMemoryIT {
  private static final long HEAP = 200L << 20;
  private static final Pattern ANONYMOUS = Pattern.compile("RssAnon:\\s+(\\d+) kB");

  /** 2.1 GiB: 384 experts of three matrices each, in one file. */
  private static final ModelShape SHAPE = new ModelShape(3, 128, 768, 1280, 1024);

  @TempDir
  private Path folder;

  @Test
  void memoryStaysBelowThreeQuartersOfAGigabyte() throws Exception {
    Path source = folder.resolve("source");
    new SyntheticCheckpoint(SyntheticFamily.QWEN3_MOE, SHAPE, DType.BF16, 5, 8L << 30)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toString()));
    assertThat(bytes(source)).isGreaterThan(10 * HEAP);

    long peak = 0;
    try (RunningSubmit running = SparkSubmit.local(2).heap((HEAP >> 20) + "m")
        // Spark itself refuses to start with less than 450 MiB
        .conf("spark.testing.reservedMemory", "16777216")
        .start("quantize", "--input", source.toString(), "--output", folder.resolve("output").toString(),
            "--scale-search", "rtn")) {
      while (running.driver().isAlive()) {
        peak = Math.max(peak, anonymous(running.driver()));
        Thread.sleep(20);
      }

      SparkSubmitResult result = running.await();
      assertThat(result.status()).as(result.err()).isZero();
    }

    // the heap, what the JVM has beside it, and two tasks' buffers
    assertThat(peak).as("peak of RssAnon").isBetween(HEAP / 2, 768L << 20);
  }

  private static long bytes(Path folder) throws IOException {
    try (var files = Files.list(folder)) {
      return files.mapToLong(file -> file.toFile().length()).sum();
    }
  }

  private static long anonymous(ProcessHandle process) throws IOException {
    try {
      Matcher line = ANONYMOUS.matcher(Files.readString(Path.of("/proc/" + process.pid() + "/status")));
      return line.find() ? Long.parseLong(line.group(1)) << 10 : 0;
    } catch (NoSuchFileException e) {
      return 0;
    } catch (IOException e) {
      if (process.isAlive()) {
        throw e;
      }

      return 0;
    }
  }
}

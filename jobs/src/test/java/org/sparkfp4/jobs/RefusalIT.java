package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.assertj.core.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.output.OutputLock;

/** What quantize refuses, when it says so, and what it leaves. */
class RefusalIT {
  private static final Path SOURCE = CheckpointFiles.golden("qwen3_moe_bf16");
  private static final String EXPERT = "model.layers.1.mlp.experts.2.";

  @TempDir
  private Path folder;

  private Path source;
  private Path output;

  @BeforeEach
  void copySource() throws IOException {
    source = Files.createDirectory(folder.resolve("source"));
    output = folder.resolve("output");
    for (String file : SOURCE.toFile().list()) {
      Files.copy(SOURCE.resolve(file), source.resolve(file), StandardCopyOption.COPY_ATTRIBUTES);
      source.resolve(file).toFile().setWritable(true);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "gate_proj, 7FC0, NaN, auto, 256m",
    "down_proj, FF80, -Infinity, auto, 256m",
    "up_proj, 7F80, Infinity, java, 256m",
    "up_proj, 7FC0, NaN, auto, 4096",
    "down_proj, 7F80, Infinity, java, 4096"
  })
  void weightThatIsNoNumber(String layer, String bits, String value, String tier, String unitBytes) throws Exception {
    String name = EXPERT + layer + ".weight";
    StoredTensor weight = CheckpointFiles.read(SOURCE).get(name);
    long cols = weight.shape().get(1);
    String file = poison(name, 37 * cols + 50, (short) Integer.parseInt(bits, 16));
    RetryCounter retries = new RetryCounter();
    SparkContext context = TestSpark.session().sparkContext();
    context.addSparkListener(retries);
    try {
      SparkSubmitResult result = new InProcess()
          .conf("spark.fp4.cpu.tier", tier)
          .conf("spark.fp4.unitBytes", unitBytes)
          .run("quantize", "--input", source.toString(), "--output", output.toString(), "--max-shard-size", "100KB");

      context.listenerBus().waitUntilEmpty(10_000);
      assertThat(result.status()).isEqualTo(1);
      assertThat(result.err())
          .startsWith("Invalid weight in " + name + ": element [37, 50] is " + value + ", in file file:" + source + "/"
              + file + "; ")
          .hasLineCount(1);
      assertThat(retries.count()).as("tasks that were tried again").isZero();
      assertThat(output.resolve("model.safetensors.index.json")).doesNotExist();
    } finally {
      context.removeSparkListener(retries);
    }

    // the source repaired, its result is that of a run without the accident
    Files.copy(SOURCE.resolve(file), source.resolve(file), StandardCopyOption.REPLACE_EXISTING);
    SparkSubmitResult repaired = new InProcess()
        .run("quantize", "--input", source.toString(), "--output", output.toString(), "--overwrite");
    assertThat(repaired.status()).as(repaired.err()).isZero();
  }

  /** Puts a value into a tensor of the copied source and gives the tensor's file. */
  private String poison(String name, long element, short bits) throws IOException {
    LocatedTensor tensor = Checkpoint.open(new Configuration(), source.toString()).tensor(name).orElseThrow();
    try (RandomAccessFile file = new RandomAccessFile(source.resolve(tensor.file()).toFile(), "rw")) {
      file.seek(tensor.offset() + 2 * element);
      file.write(ByteBuffer.allocate(2).order(ByteOrder.LITTLE_ENDIAN).putShort(bits).array());
    }

    return tensor.file();
  }

  @Test
  void outputThatAnotherRunWrites() throws Exception {
    org.apache.hadoop.fs.Path lock = new org.apache.hadoop.fs.Path(output + "/_sparkfp4/lock");
    try (OutputLock held = OutputLock.acquire(lock.getFileSystem(new Configuration()), lock)) {
      SparkSubmitResult result = quantize();

      held.requireHeld();
      assertThat(result.status()).isEqualTo(1);
      assertThat(result.err()).startsWith("Cannot write to ").contains("another run writes there (process "
          + ProcessHandle.current().pid());
    }

    assertThat(quantize().status()).isZero();
  }

  @Test
  void optionsOrSourceOtherThanThoseOfTheOutput() throws Exception {
    assertThat(quantize().status()).isZero();
    Map<String, String> before = Outputs.identities(output, "");

    SparkSubmitResult other = quantize("--layout", "compressed-tensors");
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).startsWith("Cannot write to ").contains("--overwrite", "modelopt", "compressed-tensors");
    assertThat(Outputs.identities(output, "")).isEqualTo(before);

    Files.setLastModifiedTime(source.resolve("model-00001-of-00003.safetensors"),
        FileTime.fromMillis(1_000_000));
    SparkSubmitResult changed = quantize();
    assertThat(changed.status()).isEqualTo(1);
    assertThat(changed.err()).startsWith("Cannot write to ").contains("--overwrite", "model-00001-of-00003");
    assertThat(Outputs.identities(output, "")).isEqualTo(before);

    SparkSubmitResult replaced = quantize("--layout", "compressed-tensors", "--overwrite");
    assertThat(replaced.status()).as(replaced.err()).isZero();
    assertThat(CheckpointFiles.read(output)).containsKey(EXPERT + "down_proj.weight_packed");
    assertThat(output.resolve("hf_quant_config.json")).doesNotExist();
  }

  @Test
  void folderOfSomebodyElse() throws Exception {
    Files.createDirectory(output);
    Files.writeString(output.resolve("thesis.tex"), "only copy");

    for (String[] options : new String[][] {{}, {"--overwrite"}}) {
      SparkSubmitResult result = quantize(options);
      assertThat(result.status()).isEqualTo(1);
      assertThat(result.err()).startsWith("Cannot write to ").contains("thesis.tex");
    }

    assertThat(output.toFile().list()).containsExactly("thesis.tex");
  }

  /** Whoever can make a file in the output must not have a run write, or remove, where that one cannot. */
  @ParameterizedTest
  @ValueSource(strings = {
    "_sparkfp4", "_sparkfp4/attempts", "_sparkfp4/lock", "_sparkfp4/plan.json", "model-00001-of-00001.safetensors",
    "config.json", "sparkfp4-manifest.json", "model.safetensors.index.json", "README.md"
  })
  void outputWithLinksOutOfIt(String name) throws Exception {
    Path elsewhere = Files.createDirectory(folder.resolve("elsewhere"));
    Path file = Files.writeString(elsewhere.resolve("file"), "mine");
    Path folderThere = Files.createDirectories(elsewhere.resolve("attempts"));
    Files.writeString(folderThere.resolve("00000-of-mine"), "mine");
    Files.createDirectories(output.resolve(name).getParent());
    boolean isFolder = name.equals("_sparkfp4") || name.endsWith("attempts");
    Path target = name.endsWith("attempts") ? folderThere : isFolder ? elsewhere : file;
    Files.createSymbolicLink(output.resolve(name), target);
    Map<String, String> before = Outputs.identities(elsewhere, "");

    for (String[] options : new String[][] {{}, {"--overwrite"}}) {
      SparkSubmitResult result = quantize(options);
      assertThat(result.status()).isEqualTo(1);
      assertThat(result.err()).isEqualTo("Cannot write to file:" + output + ": " + name
          + " in it is a symbolic link, which would lead a run elsewhere; remove it, or choose another folder\n");
    }

    assertThat(file).hasContent("mine");
    assertThat(folderThere.resolve("00000-of-mine")).hasContent("mine");
    assertThat(Outputs.identities(elsewhere, "")).isEqualTo(before);
    Files.delete(output.resolve(name));
    Files.createDirectories(output.resolve("_sparkfp4"));
    assertThat(quantize().status()).isZero();
  }

  /** A model of one expert whose tensors are twice the disk each; its file is one hole. */
  @Test
  void outputThatWillNotFit() throws Exception {
    long space = Files.getFileStore(folder).getTotalSpace();
    Assumptions.assumeThat(space).as("a disk so large that a hole beyond it would be no file").isLessThan(1L << 41);
    long rows = space * 2 / 2 / 16384 / 16 * 16;
    long elements = rows * 16384;
    StringBuilder header = new StringBuilder("{");
    long end = 0;
    String path = "\"model.layers.0.mlp.experts.0.";
    for (String layer : new String[] {"gate_proj", "up_proj", "down_proj"}) {
      String shape = layer.equals("down_proj") ? "16384," + rows : rows + ",16384";
      header.append(path).append(layer).append(".weight\":{\"dtype\":\"BF16\",\"shape\":[").append(shape)
          .append("],\"data_offsets\":[").append(end).append(',').append(end += elements * 2).append("]},");
    }

    header.setCharAt(header.length() - 1, '}');
    for (String file : source.toFile().list()) {
      Files.delete(source.resolve(file));
    }

    try (RandomAccessFile file = new RandomAccessFile(source.resolve("model.safetensors").toFile(), "rw")) {
      file.write(ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(header.length()).array());
      file.writeBytes(header.toString());
      file.setLength(8 + header.length() + end);
    }

    Files.writeString(source.resolve("config.json"), "{\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 1, "
        + "\"hidden_size\": 16384, \"num_experts\": 1, \"moe_intermediate_size\": " + rows + "}");

    SparkSubmitResult result = quantize();

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).matches("Cannot write to .*: [\\d,]+ bytes are needed and [\\d,]+ are free; "
        + "make room, or choose another folder\\R");
    assertThat(output).doesNotExist();
  }

  @Test
  void outputThatCannotBeMade() {
    output = Path.of("/proc/sparkfp4-output");

    SparkSubmitResult result = quantize();

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).startsWith("Cannot ").contains("/proc/sparkfp4-output").hasLineCount(1);
  }

  @Test
  void outputThatIsNoFolder() throws Exception {
    output = Files.writeString(folder.resolve("file"), "mine");
    assertThat(quantize().err()).isEqualTo("Cannot write to file:" + output
        + ": it is a file; choose an empty folder, or one to be made\n");

    output = folder.resolve("file/below");
    assertThat(quantize().err()).startsWith("Cannot write to file:" + output + ": ").hasLineCount(1);

    output = Files.createSymbolicLink(folder.resolve("link"), folder.resolve("nowhere"));
    assertThat(quantize().err()).startsWith("Cannot write to file:" + output + ": ").hasLineCount(1);
    assertThat(folder.resolve("file")).hasContent("mine");
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "''         | 2 | Invalid value for option '--output': \"\" is no path; is a shell variable unset?",
    "my:model   | 2 | Invalid value for option '--output': \"my:model\" is no path: what stands before its first colon",
    "foo://b/x  | 1 | Cannot use the file system of foo://b/x: No FileSystem for scheme \"foo\"; put its connector",
    "s3a://b/x  | 1 | Cannot use the file system of s3a://b/x: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"
  })
  void textThatIsNoPath(String text, int status, String message) {
    SparkSubmitResult result = new InProcess().run("quantize", "--input", source.toString(), "--output", text);

    assertThat(result.status()).isEqualTo(status);
    assertThat(result.err()).startsWith(message);
  }

  /** Most settings are read by tasks; by then --overwrite would have removed the earlier output. */
  @ParameterizedTest
  @CsvSource({
    "spark.fp4.cpu.tier, neon, Invalid kernel tier: neon",
    "spark.fp4.read, foo, Invalid option read: \"foo\"",
    "spark.fp4.slabBytes, 0, Invalid option slabBytes: 0",
    "spark.fp4.unitBytes, many, Invalid spark.fp4.unitBytes: many; give a size such as 256m",
    "spark.fp4.unitBytes, -5, Invalid spark.fp4.unitBytes: -5; give a size such as 256m",
    "spark.fp4.unitBytes, 0, Invalid spark.fp4.unitBytes: 0; give 1 to 2147483639 bytes",
    "spark.fp4.unitBytes, 2g, Invalid spark.fp4.unitBytes: 2g; give 1 to 2147483639 bytes",
    "spark.fp4.columnar, maybe, Invalid spark.fp4.columnar: maybe; it is auto or off",
    "spark.fp4.commit, x, Invalid spark.fp4.commit: x; it is auto"
  })
  void settingThatIsNone(String key, String value, String message) throws Exception {
    Files.createDirectories(output.resolve("_sparkfp4"));
    Files.writeString(output.resolve("model-00001-of-00001.safetensors"), "of an earlier run");

    SparkSubmitResult result = new InProcess()
        .conf(key, value)
        .run("quantize", "--input", source.toString(), "--output", output.toString(), "--overwrite");

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).startsWith(message).hasLineCount(1);
    assertThat(output.resolve("model-00001-of-00001.safetensors")).hasContent("of an earlier run");
    assertThat(output.resolve("_sparkfp4")).isEmptyDirectory();
  }

  @Test
  void nameOfASettingThatIsNoneIsAWrongCommandLine() {
    SparkSubmitResult result = new InProcess().conf("spark.fp4.devcie", "cuda")
        .run("quantize", "--input", source.toString(), "--output", output.toString(), "--overwrite");

    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).startsWith(
        "Invalid setting spark.fp4.devcie: there is none of this name; there are spark.fp4.columnar");
    assertThat(output).doesNotExist();
  }

  @Test
  void dryRunWritesNothing() {
    SparkSubmitResult result = quantize("--dry-run", "--overwrite");

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).contains("qwen3_moe to NVFP4", "model-00001-of-00001.safetensors");
    assertThat(output).doesNotExist();
  }

  @Test
  void sourceIsLeftAlone() throws Exception {
    Map<String, String> before = Outputs.identities(source, "");

    SparkSubmitResult inside = new InProcess()
        .run("quantize", "--input", source.toString(), "--output", source.resolve("nvfp4").toString());
    assertThat(inside.status()).isEqualTo(1);
    assertThat(inside.err()).startsWith("Cannot write to ");

    Path link = Files.createSymbolicLink(folder.resolve("link"), source);
    SparkSubmitResult throughLink = new InProcess()
        .run("quantize", "--input", source.toString(), "--output", link.resolve("nvfp4").toString());
    assertThat(throughLink.status()).isEqualTo(1);
    assertThat(throughLink.err()).isEqualTo("Cannot write to file:" + link + "/nvfp4: the source file:" + source
        + " is the same folder or one inside the other; choose another --output\n");
    assertThat(quantize().status()).isZero();

    assertThat(Outputs.identities(source, "")).isEqualTo(before);
  }

  private SparkSubmitResult quantize(String... more) {
    String[] arguments = new String[5 + more.length];
    System.arraycopy(new String[] {"quantize", "--input", source.toString(), "--output", output.toString()}, 0,
        arguments, 0, 5);
    System.arraycopy(more, 0, arguments, 5, more.length);
    return new InProcess().run(arguments);
  }

  /** Counts tasks that are tried again. */
  private static final class RetryCounter extends SparkListener {
    private final AtomicInteger retried = new AtomicInteger();

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (end.taskInfo().attemptNumber() > 0) {
        retried.incrementAndGet();
      }
    }

    int count() {
      return retried.get();
    }
  }
}

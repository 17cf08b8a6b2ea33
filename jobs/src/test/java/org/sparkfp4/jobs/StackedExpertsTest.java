package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.jobs.Verified.assertVerified;
import static org.sparkfp4.jobs.Verified.verify;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** Tensors that stack the experts of a layer, in every order of their dimensions. */
class StackedExpertsTest {
  private static final int EXPERTS = 3;
  private static final int HIDDEN = 128;
  private static final int INTERMEDIATE = 64;

  @TempDir
  private Path folder;

  /** The same model with a tensor an expert is the witness. */
  @ParameterizedTest
  @CsvSource({
    "QWEN3_5_MOE, modelopt, 256m, mmap, auto",
    "QWEN3_5_MOE, modelopt, 5000, pread, off",
    "QWEN3_VL_MOE, modelopt, 256m, mmap, auto",
    "QWEN3_VL_MOE, modelopt, 5000, mmap, auto",
    "QWEN3_VL_MOE, compressed-tensors, 256m, pread, off",
    "LLAMA4, compressed-tensors, 256m, mmap, auto"
  })
  void isQuantizedAsIfEachExpertHadItsOwnTensors(
      SyntheticFamily family, String layout, String unitBytes, String read, String columnar) throws Exception {
    Path stacked = synthesize(family);
    Path split = folder.resolve("split");
    split(stacked, split, family != SyntheticFamily.QWEN3_5_MOE);

    Map<String, StoredTensor> expected = CheckpointFiles.read(quantize(
        new InProcess(), split, "expected", "--layout", layout));
    Map<String, StoredTensor> actual = CheckpointFiles.read(quantize(
        new InProcess().conf("spark.fp4.unitBytes", unitBytes).conf("spark.fp4.read", read)
            .conf("spark.fp4.columnar", columnar),
        stacked, "actual", "--layout", layout));

    assertThat(actual.keySet()).isEqualTo(expected.keySet()).anyMatch(name -> name.contains(".experts.2.up_proj."));
    expected.forEach((name, tensor) -> assertSame(name, actual.get(name), tensor));
  }

  @ParameterizedTest
  @CsvSource({"256m, mmap, auto", "20000, pread, auto", "20000, mmap, off"})
  void staysStackedForLlama4WithOneScaleForAllExperts(String unitBytes, String read, String columnar)
      throws Exception {
    Path source = synthesize(SyntheticFamily.LLAMA4);
    Path output = quantize(
        new InProcess().conf("spark.fp4.unitBytes", unitBytes).conf("spark.fp4.read", read)
            .conf("spark.fp4.columnar", columnar),
        source, "output");

    String path = "language_model.model.layers.1.feed_forward.experts.";
    assertStacked(source, output, path + "gate_up_proj", 2 * INTERMEDIATE, HIDDEN);
    assertStacked(source, output, path + "down_proj", HIDDEN, INTERMEDIATE);
    assertVerified(source, output);
  }

  /** A copy of a checkpoint with the first expert of a stack multiplied. */
  private Path withFirstExpertTimes(float factor, Path checkpoint, String module) throws IOException {
    Path source = Files.createDirectory(folder.resolve("unlike"));
    Files.copy(checkpoint.resolve("config.json"), source.resolve("config.json"));
    Map<String, StoredTensor> tensors = new LinkedHashMap<>(CheckpointFiles.read(checkpoint));
    StoredTensor stack = tensors.get(module);
    byte[] changed = stack.data().clone();
    ByteBuffer weights = ByteBuffer.wrap(changed).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < HIDDEN * 2 * INTERMEDIATE; i++) {
      weights.putShort(2 * i, BFloat16.fromFloat(factor * BFloat16.toFloat(weights.getShort(2 * i))));
    }

    tensors.put(module, new StoredTensor(DType.BF16, stack.shape(), changed));
    CheckpointFiles.write(source.resolve("model.safetensors"), tensors);
    return source;
  }

  /** One scale for all experts, of whom one is a thousand times larger, leaves the others their precision. */
  @ParameterizedTest
  @ValueSource(strings = {"rtn", "sweep"})
  void expertsThatDifferAThousandfoldKeepTheirPrecisionInAStack(String search) throws Exception {
    String module = "language_model.model.layers.1.feed_forward.experts.gate_up_proj";
    Path same = synthesize(SyntheticFamily.LLAMA4);
    Path source = withFirstExpertTimes(1000, same, module);
    byte[] enlarged = CheckpointFiles.read(source).get(module).data();

    Map<String, StoredTensor> output =
        CheckpointFiles.read(quantize(new InProcess(), source, "output", "--scale-search", search));

    int rows = 2 * INTERMEDIATE;
    FloatBuffer decoded = FloatBuffer.allocate(EXPERTS * rows * HIDDEN);
    Nvfp4.decode(
        Nvfp4Recipe.MODELOPT,
        ByteBuffer.wrap(transposed(output.get(module).data(), EXPERTS, HIDDEN / 2, rows, 1)),
        ByteBuffer.wrap(transposed(output.get(module + "_weight_scale").data(), EXPERTS, HIDDEN / 16, rows, 1)),
        EXPERTS * rows, HIDDEN,
        ByteBuffer.wrap(output.get(module + "_weight_scale_2").data()).order(ByteOrder.LITTLE_ENDIAN).getFloat(),
        decoded);
    ByteBuffer original =
        ByteBuffer.wrap(transposed(enlarged, EXPERTS, HIDDEN, rows, 2)).order(ByteOrder.LITTLE_ENDIAN);
    for (int expert = 0; expert < EXPERTS; expert++) {
      double error = 0;
      double square = 0;
      for (int i = expert * rows * HIDDEN; i < (expert + 1) * rows * HIDDEN; i++) {
        double weight = BFloat16.toFloat(original.getShort(2 * i));
        error += Math.pow(weight - decoded.get(i), 2);
        square += weight * weight;
      }

      assertThat(Math.sqrt(error / square)).as("relative error of expert %d", expert).isBetween(0.05, 0.11);
    }
  }

  /** A million times smaller than the others under their scale, an expert becomes zeros; the layer's error hides it. */
  @Test
  void anExpertThatLosesItsPrecisionInAStackIsToldOf() throws Exception {
    String module = "language_model.model.layers.1.feed_forward.experts.gate_up_proj";
    Path same = synthesize(SyntheticFamily.LLAMA4);
    Path output = folder.resolve("output");
    SparkSubmitResult plain = new InProcess().run(
        "quantize", "--input", same.toString(), "--output", folder.resolve("plain").toString());
    assertThat(plain.status()).as(plain.err()).isZero();
    assertThat(plain.out()).doesNotContain("Warning");

    Path source = withFirstExpertTimes(1e-6f, same, module);
    SparkSubmitResult told = new InProcess().run(
        "quantize", "--input", source.toString(), "--output", output.toString());
    assertThat(told.status()).as(told.err()).isZero();
    String warning = String.format(Locale.ROOT, "%.1f %% of the block scales of %s are subnormal (below 2^-6)",
        100.0 / EXPERTS, module);
    assertThat(told.out()).containsOnlyOnce("Warning: ").contains("Warning: " + warning);
    assertThat(new ObjectMapper().readTree(output.resolve("sparkfp4-report.json").toFile()).path("warnings"))
        .singleElement().asString().contains(warning);
    SparkSubmitResult verified = new InProcess().run(
        "verify", "--source", source.toString(), "--quantized", output.toString());
    assertThat(verified.status()).as(verified.out()).isZero();
    assertThat(verified.out()).contains("Warning: " + warning);
  }

  /** What is copied is held to the stack beside it, whatever the stack is stored as. */
  @ParameterizedTest
  @ValueSource(strings = {"gate_up_proj_bias", "down_proj_bias"})
  void biasesOfAnotherShapeThanTheirStackAreRefused(String bias) throws Exception {
    Path source = synthesize(SyntheticFamily.GPT_OSS);
    String name = "model.layers.0.mlp.experts." + bias;
    Map<String, StoredTensor> tensors = new LinkedHashMap<>(CheckpointFiles.read(source));
    StoredTensor whole = tensors.get(name);
    long rows = whole.shape().get(1);
    tensors.put(name, new StoredTensor(
        whole.dtype(), List.of((long) EXPERTS - 1, rows),
        Arrays.copyOf(whole.data(), whole.data().length / EXPERTS * (EXPERTS - 1))));
    Path changed = Files.createDirectory(folder.resolve("changed"));
    Files.copy(source.resolve("config.json"), changed.resolve("config.json"));
    CheckpointFiles.write(changed.resolve("model.safetensors"), tensors);

    SparkSubmitResult result = new InProcess().run(
        "quantize", "--input", changed.toString(), "--output", folder.resolve("output").toString());

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).startsWith("Invalid tensor " + name + " (model.safetensors): its shape is ["
        + (EXPERTS - 1) + ", " + rows + "], but biases of the experts in ")
        .contains(" are [" + EXPERTS + ", " + rows + "] by config.json");
    assertThat(folder.resolve("output")).doesNotExist();
  }

  private static void assertStacked(Path source, Path output, String module, int rows, int cols) throws Exception {
    byte[] weights = transposed(CheckpointFiles.read(source).get(module).data(), EXPERTS, cols, rows, 2);
    ByteBuffer data = ByteBuffer.wrap(weights).order(ByteOrder.LITTLE_ENDIAN);
    float globalScale = Nvfp4Recipe.MODELOPT.globalScale(Nvfp4.amax(ElementType.BF16, data), ElementType.BF16);
    ByteBuffer packed = ByteBuffer.allocate(EXPERTS * rows * cols / 2);
    ByteBuffer scales = ByteBuffer.allocate(EXPERTS * rows * cols / 16);
    Nvfp4.encode(
        Nvfp4Recipe.MODELOPT, ElementType.BF16, data, EXPERTS * rows, cols, globalScale, packed, scales, null);
    assertLayer(output, module, rows, cols, packed.array(), scales.array(), globalScale);
  }

  private static void assertLayer(
      Path output, String module, int rows, int cols, byte[] packed, byte[] scales, float globalScale)
      throws Exception {
    Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
    assertSame(module, tensors.get(module), new StoredTensor(
        DType.U8, List.of((long) EXPERTS, cols / 2L, (long) rows), transposed(packed, EXPERTS, rows, cols / 2, 1)));
    assertSame(module, tensors.get(module + "_weight_scale"), new StoredTensor(
        DType.F8_E4M3, List.of((long) EXPERTS, cols / 16L, (long) rows),
        transposed(scales, EXPERTS, rows, cols / 16, 1)));
    StoredTensor scalar = tensors.get(module + "_weight_scale_2");
    assertThat(scalar.shape()).isEmpty();
    assertThat(ByteBuffer.wrap(scalar.data()).order(ByteOrder.LITTLE_ENDIAN).getFloat()).isEqualTo(globalScale);
    assertThat(tensors.get(module + "_input_scale").shape()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"256m, mmap", "12000, mmap", "12000, pread"})
  void staysStackedForGptOssWithItsBiases(String unitBytes, String read) throws Exception {
    Path source = synthesize(SyntheticFamily.GPT_OSS);
    Path output = quantize(
        new InProcess().conf("spark.fp4.unitBytes", unitBytes).conf("spark.fp4.read", read), source, "output");

    Map<String, StoredTensor> before = CheckpointFiles.read(source);
    Map<String, StoredTensor> after = CheckpointFiles.read(output);
    String path = "model.layers.0.mlp.experts.";
    for (String bias : List.of("gate_up_proj_bias", "down_proj_bias")) {
      assertSame(bias, after.get(path + bias), before.get(path + bias));
    }

    assertThat(after.keySet()).noneMatch(name -> name.endsWith("_blocks") || name.endsWith("_scales"));
    int rows = 2 * INTERMEDIATE;
    ByteBuffer codes = ByteBuffer.wrap(before.get(path + "gate_up_proj_blocks").data());
    ByteBuffer scales = ByteBuffer.wrap(before.get(path + "gate_up_proj_scales").data());
    int kmax = Mxfp4.largestExponent(scales);
    ByteBuffer packed = ByteBuffer.allocate(EXPERTS * rows * HIDDEN / 2);
    ByteBuffer blockScales = ByteBuffer.allocate(EXPERTS * rows * HIDDEN / 16);
    Mxfp4.cast(
        Nvfp4Recipe.MODELOPT, codes, scales, EXPERTS * rows, HIDDEN, kmax, packed, blockScales, null);
    assertThat(packed.array()).as("an exact cast").isEqualTo(codes.array());
    assertLayer(output, path + "gate_up_proj", rows, HIDDEN, packed.array(), blockScales.array(),
        Mxfp4.globalScale(Nvfp4Recipe.MODELOPT, kmax));
    assertVerified(source, output);
  }

  /** As it is trained and stored by transformers: no codes, K before the rows. */
  @ParameterizedTest
  @CsvSource({"256m, mmap, auto", "12000, pread, off"})
  void staysStackedForGptOssInBf16(String unitBytes, String read, String columnar) throws Exception {
    Path published = synthesize(SyntheticFamily.GPT_OSS);
    Random random = new Random(15);
    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    CheckpointFiles.read(published).forEach((name, tensor) -> {
      if (name.endsWith("_blocks")) {
        int rows = name.endsWith("down_proj_blocks") ? HIDDEN : 2 * INTERMEDIATE;
        int k = name.endsWith("down_proj_blocks") ? INTERMEDIATE : HIDDEN;
        ByteBuffer data = ByteBuffer.allocate(2 * EXPERTS * k * rows).order(ByteOrder.LITTLE_ENDIAN);
        while (data.hasRemaining()) {
          data.putShort(BFloat16.fromFloat(0.02f * (float) random.nextGaussian()));
        }

        tensors.put(name.replace("_blocks", ""),
            new StoredTensor(DType.BF16, List.of((long) EXPERTS, (long) k, (long) rows), data.array()));
      } else if (!name.endsWith("_scales")) {
        tensors.put(name, tensor);
      }
    });
    Path source = Files.createDirectory(folder.resolve("bf16"));
    CheckpointFiles.write(source.resolve("model.safetensors"), tensors);
    ObjectMapper json = new ObjectMapper();
    ObjectNode config = (ObjectNode) json.readTree(published.resolve("config.json").toFile());
    config.remove("quantization_config");
    json.writeValue(source.resolve("config.json").toFile(), config);

    Path output = quantize(
        new InProcess().conf("spark.fp4.unitBytes", unitBytes).conf("spark.fp4.read", read)
            .conf("spark.fp4.columnar", columnar),
        source, "output");

    String path = "model.layers.1.mlp.experts.";
    assertStacked(source, output, path + "gate_up_proj", 2 * INTERMEDIATE, HIDDEN);
    assertStacked(source, output, path + "down_proj", HIDDEN, INTERMEDIATE);
    for (String bias : List.of("gate_up_proj_bias", "down_proj_bias")) {
      assertSame(bias, CheckpointFiles.read(output).get(path + bias), tensors.get(path + bias));
    }

    assertVerified(source, output);
  }

  @Test
  void verificationFindsAnExpertInTheWrongPlace() throws Exception {
    Path source = synthesize(SyntheticFamily.LLAMA4);
    Path output = quantize(new InProcess(), source, "output");
    String name = "language_model.model.layers.1.feed_forward.experts.down_proj";
    Map<String, StoredTensor> tensors = new LinkedHashMap<>(CheckpointFiles.read(output));
    StoredTensor packed = tensors.get(name);
    byte[] swapped = packed.data().clone();
    int expert = swapped.length / EXPERTS;
    System.arraycopy(packed.data(), 0, swapped, expert, expert);
    System.arraycopy(packed.data(), expert, swapped, 0, expert);
    tensors.put(name, new StoredTensor(packed.dtype(), packed.shape(), swapped));
    CheckpointFiles.write(output.resolve("model-00001-of-00001.safetensors"), tensors);
    CheckpointFiles.writeIndex(output, "model-00001-of-00001.safetensors", tensors);

    SparkSubmitResult result = verify(source, output);

    assertThat(result.status()).isEqualTo(3);
    assertThat(result.out()).contains("Layer " + name + " has a relative error of");
  }

  @Test
  void aStackThatIsNotQuantizedIsCarriedOver() throws Exception {
    Path source = synthesize(SyntheticFamily.QWEN3_VL_MOE);
    Path output = quantize(new InProcess(), source, "output", "--exclude", "*.layers.0.mlp.experts.*");

    String name = "model.language_model.layers.0.mlp.experts.gate_up_proj";
    assertSame(name, CheckpointFiles.read(output).get(name), CheckpointFiles.read(source).get(name));
    assertVerified(source, output);
  }

  @Test
  void gptOssHasNoFormWithATensorAnExpert() throws Exception {
    Path source = synthesize(SyntheticFamily.GPT_OSS);
    SparkSubmitResult result = new InProcess().run(
        "quantize", "--input", source.toString(), "--output", folder.resolve("output").toString(), "--layout",
        "compressed-tensors");

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).startsWith("Cannot split model.layers.0.mlp.experts.gate_up_proj_blocks (model-")
        .contains("use --layout modelopt").hasLineCount(1);
  }

  private Path synthesize(SyntheticFamily family) throws Exception {
    Path source = folder.resolve("source");
    new SyntheticCheckpoint(
            family, new ModelShape(2, EXPERTS, HIDDEN, INTERMEDIATE, 96), DType.BF16, 11, 1 << 20)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toUri()));
    return source;
  }

  private Path quantize(InProcess run, Path source, String name, String... options) {
    Path output = folder.resolve(name);
    List<String> arguments =
        new ArrayList<>(List.of(
            "quantize", "--input", source.toString(), "--output", output.toString()));
    arguments.addAll(List.of(options));
    if (!arguments.contains("--scale-search")) {
      arguments.addAll(List.of("--scale-search", "rtn"));
    }

    SparkSubmitResult result = run.run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    return output;
  }

  /** Writes the same model with two-dimensional tensors for each expert. */
  private static void split(Path stacked, Path split, boolean isTransposed) throws Exception {
    Files.createDirectory(split);
    Files.copy(stacked.resolve("config.json"), split.resolve("config.json"));
    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    CheckpointFiles.read(stacked).forEach((name, tensor) -> {
      boolean gateUp = name.endsWith(".experts.gate_up_proj") && !name.startsWith("mtp.");
      if (!gateUp && !name.endsWith(".experts.down_proj")) {
        tensors.put(name, tensor);
        return;
      }

      int rows = gateUp ? 2 * INTERMEDIATE : HIDDEN;
      int cols = gateUp ? HIDDEN : INTERMEDIATE;
      byte[] data = isTransposed ? transposed(tensor.data(), EXPERTS, cols, rows, 2) : tensor.data();
      String path = name.substring(0, name.lastIndexOf('.') + 1);
      List<String> linears = gateUp ? List.of("gate_proj", "up_proj") : List.of("down_proj");
      int bytes = rows * cols * 2 / linears.size();
      for (int i = 0; i < EXPERTS * linears.size(); i++) {
        byte[] matrix = new byte[bytes];
        System.arraycopy(data, i * bytes, matrix, 0, bytes);
        tensors.put(
            path + i / linears.size() + "." + linears.get(i % linears.size()) + ".weight",
            new StoredTensor(tensor.dtype(), List.of((long) rows / linears.size(), (long) cols), matrix));
      }
    });
    CheckpointFiles.write(split.resolve("model.safetensors"), tensors);
  }

  /** {@code [n, rows, cols]} as {@code [n, cols, rows]}. */
  private static byte[] transposed(byte[] data, int n, int rows, int cols, int elementBytes) {
    byte[] result = new byte[data.length];
    for (int i = 0; i < n; i++) {
      for (int row = 0; row < rows; row++) {
        for (int col = 0; col < cols; col++) {
          System.arraycopy(
              data, ((i * rows + row) * cols + col) * elementBytes,
              result, ((i * cols + col) * rows + row) * elementBytes, elementBytes);
        }
      }
    }

    return result;
  }

  private static void assertSame(String name, StoredTensor actual, StoredTensor expected) {
    assertThat(actual).as(name).isNotNull();
    assertThat(actual.dtype()).as(name).isEqualTo(expected.dtype());
    assertThat(actual.shape()).as(name).isEqualTo(expected.shape());
    assertThat(actual.data()).as(name).isEqualTo(expected.data());
  }
}

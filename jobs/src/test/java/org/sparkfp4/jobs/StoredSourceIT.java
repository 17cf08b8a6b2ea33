package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.jobs.Verified.assertVerified;
import static org.sparkfp4.jobs.Verified.verify;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.Dequantizer;
import org.sparkfp4.safetensors.DType;

/** Sources in FP8, INT4 and MXFP4 through the whole job: the bytes that the producers' functions gave. */
class StoredSourceIT {
  @TempDir
  private Path folder;

  @ParameterizedTest
  @ValueSource(strings = {"deepseek_v3_fp8", "minimax_m3_mxfp8", "kimi_k25_int4", "kimi_k3_mxfp4"})
  void everyTensorIsTheProducersOrTheSources(String name) throws Exception {
    Path source = CheckpointFiles.golden(name);
    Path output = quantize(source, "output", Map.of());
    Map<String, StoredTensor> expected = CheckpointFiles.read(CheckpointFiles.golden(name + ".expected/modelopt_rtn"
        + ".safetensors"));
    TreeSet<String> names = new TreeSet<>(expected.keySet());
    expected.keySet().stream()
        .filter(tensor -> tensor.endsWith(".weight_scale_2"))
        .forEach(tensor -> names.add(tensor.replace("weight_scale_2", "input_scale")));
    expected.putAll(unquantized(source, expected));
    names.addAll(expected.keySet());
    Map<String, StoredTensor> actual = CheckpointFiles.read(output);

    assertThat(actual.keySet()).isEqualTo(names);
    expected.forEach((tensor, right) -> {
      StoredTensor found = actual.get(tensor);
      assertThat(found.dtype()).as(tensor).isEqualTo(right.dtype());
      assertThat(found.shape()).as(tensor).isEqualTo(right.shape());
      assertThat(found.data()).as(tensor).isEqualTo(right.data());
    });
    JsonNode config = new ObjectMapper().readTree(output.resolve("config.json").toFile());
    assertThat(config.at("/quantization_config/quant_method").asText()).isEqualTo("modelopt");
    assertVerified(source, output);
  }

  /** What is not quantized: as it was, or in BF16 by the reference. */
  private static Map<String, StoredTensor> unquantized(Path folder, Map<String, StoredTensor> quantized)
      throws Exception {
    Checkpoint checkpoint = Checkpoint.open(new Configuration(), folder.toString());
    SourceTensors source = SourceTensors.of(checkpoint.tensors(), new ModelConfig(checkpoint.config()));
    Map<String, StoredTensor> bytes = CheckpointFiles.read(folder);
    Map<String, StoredTensor> result = new HashMap<>();
    for (LocatedTensor tensor : source.tensors()) {
      String module = SourceTensors.module(tensor.name());
      StoredWeight stored = source.stored(tensor);
      if (stored == null) {
        result.put(tensor.name(), bytes.get(tensor.name()));
      } else if (!quantized.containsKey(module + ".weight_scale_2")) {
        ByteBuffer bf16 = ByteBuffer.allocate(Math.toIntExact(tensor.rows() * tensor.cols() * 2));
        Dequantizer.toBf16(
            stored.scheme(), ByteBuffer.wrap(bytes.get(tensor.name()).data()),
            ByteBuffer.wrap(bytes.get(stored.scale().name()).data()), tensor.rows(), tensor.cols(), bf16);
        result.put(module + ".weight", new StoredTensor(DType.BF16, tensor.shape(), bf16.array()));
      }
    }

    return result;
  }

  /** Every unit of these is cut, at multiples of its scales' rows. */
  @ParameterizedTest
  @CsvSource({
    "deepseek_v3_fp8, 16384, auto",
    "deepseek_v3_fp8, 40000, off",
    "minimax_m3_mxfp8, 1000, auto",
    "minimax_m3_mxfp8, 1000, off",
    "kimi_k25_int4, 1000, auto",
    "kimi_k25_int4, 1g, off",
    "kimi_k3_mxfp4, 1000, auto",
    "kimi_k3_mxfp4, 1000, off"
  })
  void everyWayGivesTheSameBytes(String name, String unitBytes, String columnar) throws Exception {
    Path source = CheckpointFiles.golden(name);
    Path whole = quantize(source, "whole", Map.of());
    Path other = quantize(
        source, "other", Map.of("spark.fp4.unitBytes", unitBytes, "spark.fp4.columnar", columnar));

    Outputs.assertSame(whole, other);
  }

  @ParameterizedTest
  @ValueSource(strings = {"deepseek_v3_fp8", "minimax_m3_mxfp8", "kimi_k25_int4", "kimi_k3_mxfp4"})
  void theOtherLayoutStandsUpToVerification(String name) throws Exception {
    Path source = CheckpointFiles.golden(name);
    Path output = quantize(source, "output", Map.of(), "--layout", "compressed-tensors", "--targets", "linears");

    assertVerified(source, output);
    assertThat(CheckpointFiles.read(output).keySet()).noneMatch(tensor -> tensor.endsWith("_inv"))
        .noneMatch(tensor -> tensor.endsWith(".weight_shape"));
  }

  @ParameterizedTest
  @CsvSource({
    "deepseek_v3_fp8, model.layers.0.self_attn.o_proj.weight, 'is not the source''s model.layers.0.self_attn.o_proj'",
    "deepseek_v3_fp8, model.layers.1.mlp.experts.2.up_proj.weight, differs from the source quantized again in 1 bytes",
    "kimi_k25_int4, language_model.model.layers.1.mlp.experts.1.down_proj.weight, in 1 bytes",
    "kimi_k3_mxfp4, language_model.model.layers.2.block_sparse_moe.experts.1.w3.weight, in 1 bytes",
    "kimi_k3_mxfp4, language_model.model.layers.2.block_sparse_moe.experts.1.w2.weight_scale, in 1 bytes",
    "kimi_k3_mxfp4, language_model.model.layers.2.block_sparse_moe.experts.1.w2.weight_scale_2, the largest weight"
  })
  void verificationFindsAChangedByte(String name, String tensor, String difference) throws Exception {
    Path source = CheckpointFiles.golden(name);
    Path output = quantize(source, "output", Map.of());
    poison(output, tensor, 2, 0x10);

    SparkSubmitResult result = verify(source, output);

    assertThat(result.status()).isEqualTo(3);
    assertThat(result.out()).contains(tensor).contains(difference);
  }

  @Test
  void aScaleThatIsLeftOverIsFound() throws Exception {
    Path source = CheckpointFiles.golden("deepseek_v3_fp8");
    Path output = quantize(source, "output", Map.of());
    String stale = "model.layers.0.self_attn.o_proj.weight_scale_inv";
    Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
    tensors.put(stale, CheckpointFiles.read(source).get(stale));
    String shard = "model-00001-of-00001.safetensors";
    CheckpointFiles.write(output.resolve(shard), tensors);
    CheckpointFiles.writeIndex(output, shard, tensors);

    assertThat(verify(source, output).out()).contains("Unexpected tensor " + stale);
  }

  /** NaN and infinity, in whole and in cut units, in what is quantized and in what becomes BF16. */
  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "kimi_k3_mxfp4|language_model.model.layers.2.block_sparse_moe.experts.1.w3.weight_scale|18|FF|256m|Invalid scale "
        + "in %s: element [4, 2] makes weights NaN, in file ",
    "kimi_k3_mxfp4|language_model.model.layers.2.block_sparse_moe.experts.1.w3.weight_scale|378|FF|1000|Invalid scale "
        + "in %s: element [94, 2] makes weights NaN, in file ",
    "minimax_m3_mxfp8|language_model.model.layers.1.block_sparse_moe.experts.1.w3.weight_scale_inv|18|FF|256m|Invalid "
        + "weight in language_model.model.layers.1.block_sparse_moe.experts.1.w3.weight: element [4, 64] in file ",
    "minimax_m3_mxfp8|language_model.model.layers.0.self_attn.k_proj.weight_scale_inv|7|FF|256m|Invalid weight in "
        + "language_model.model.layers.0.self_attn.k_proj.weight: element [1, 96] in file ",
    "kimi_k25_int4|language_model.model.layers.1.mlp.experts.1.up_proj.weight_scale|11|7F|256m|Invalid scale in "
        + "%s: element [1, 1] makes weights ",
    "deepseek_v3_fp8|model.layers.1.mlp.experts.2.up_proj.weight|300|7F|256m|Invalid weight in %s: element "
        + "[1, 44] in file ",
    "deepseek_v3_fp8|model.layers.1.mlp.experts.2.up_proj.weight|38400|7F|16384|Invalid weight in %s: element "
        + "[150, 0] in file ",
    "deepseek_v3_fp8|model.layers.0.self_attn.o_proj.weight|300|FF|256m|Invalid weight in %s: element [1, 44] in file "
  })
  void whatIsNoNumberFailsTheRun(String name, String tensor, int at, String value, String unitBytes, String message)
      throws Exception {
    Path source = Files.createDirectory(folder.resolve("source"));
    for (String file : CheckpointFiles.golden(name).toFile().list()) {
      Files.copy(CheckpointFiles.golden(name).resolve(file), source.resolve(file));
    }

    set(source, tensor, at, Integer.parseInt(value, 16));
    Path output = folder.resolve("output");

    SparkSubmitResult result = new InProcess().conf("spark.fp4.unitBytes", unitBytes)
        .run("quantize", "--input", source.toString(), "--output", output.toString());

    assertThat(result.status()).as(result.err()).isEqualTo(1);
    assertThat(result.err())
        .startsWith(String.format(message, tensor))
        .contains(tensor, "file:" + source, "Repair the tensor in the source and start again with --overwrite")
        .hasLineCount(1);
    assertThat(output.resolve("model.safetensors.index.json")).doesNotExist();
  }

  @Test
  void aDryRunSaysWhatBecomesOfWhat() throws Exception {
    SparkSubmitResult result = new InProcess().run(
        "quantize", "--input", CheckpointFiles.golden("deepseek_v3_fp8").toString(), "--output",
        folder.resolve("none").toString(), "--dry-run");

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out())
        .contains("tensors    35 in, 48 out")
        .contains("to BF16    5 tensors that the source stores quantized, 557.06 kB; its scales and shapes, 14 ");
    Path output = quantize(CheckpointFiles.golden("deepseek_v3_fp8"), "output", Map.of());
    assertThat(CheckpointFiles.read(output)).hasSize(48);
    assertThat(Files.readString(output.resolve("README.md"))).contains("in BF16");
  }

  @Test
  void blocksThatNoCastCanHoldAreCounted() throws Exception {
    Path source = Files.createDirectory(folder.resolve("source"));
    Path golden = CheckpointFiles.golden("kimi_k3_mxfp4");
    for (String file : golden.toFile().list()) {
      Files.copy(golden.resolve(file), source.resolve(file));
    }

    String scale = "language_model.model.layers.1.block_sparse_moe.experts.0.w2.weight_scale";
    int first = CheckpointFiles.read(golden).get(scale).data()[0] & 0xFF;
    set(source, scale, 5, first - 60);

    Path output = quantize(source, "output", Map.of("spark.fp4.unitBytes", "1000"));

    assertVerified(source, output);
    assertThat(Files.readString(output.resolve("sparkfp4-manifest.json"))).contains("\"requantized\" : 2");
    assertThat(Files.readString(output.resolve("README.md"))).contains("2 of ");
  }

  /** The same experts as DeepSeek V4 names them, beside FP8 with exponents for scales. */
  @Test
  void theNamesOfDeepSeekV4GiveTheSameBytes() throws Exception {
    Map<String, StoredTensor> source = new TreeMap<>();
    CheckpointFiles.read(CheckpointFiles.golden("kimi_k3_mxfp4")).forEach((name, tensor) -> {
      boolean packed = name.endsWith("_packed");
      DType dtype = packed ? DType.I8 : name.endsWith("_scale") ? DType.F8_E8M0 : tensor.dtype();
      String stored = v4(name).replace("weight_packed", "weight").replace("weight_scale", "scale");
      source.put(stored, new StoredTensor(dtype, tensor.shape(), tensor.data()));
    });
    StoredTensor attention =
        CheckpointFiles.read(CheckpointFiles.golden("deepseek_v3_fp8")).get("model.layers.0.self_attn.o_proj.weight");
    source.put("layers.1.attn.wo_b.weight", attention);
    source.put("layers.1.attn.wo_b.scale", new StoredTensor(DType.F8_E8M0, List.of(2L, 2L),
        new byte[] {120, 119, 118, 0}));
    Path renamed = write("renamed", source, """
        {"model_type": "deepseek_v4", "hidden_size": 128, "moe_intermediate_size": 96, "n_routed_experts": 3,
         "num_hidden_layers": 3, "first_k_dense_replace": 1, "expert_dtype": "fp4", "quantization_config":
         {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}}""");

    Path output = quantize(renamed, "output", Map.of());

    Map<String, StoredTensor> actual = CheckpointFiles.read(output);
    CheckpointFiles.read(CheckpointFiles.golden("kimi_k3_mxfp4.expected/modelopt_rtn.safetensors")).forEach(
        (name, right) -> assertThat(actual.get(v4(name)).data()).as(name).isEqualTo(right.data()));
    assertThat(actual.get("layers.1.attn.wo_b.weight").dtype()).isEqualTo(DType.BF16);
    assertThat(actual).doesNotContainKey("layers.1.attn.wo_b.scale");
    assertThat(new ObjectMapper().readTree(output.resolve("config.json").toFile()).has("expert_dtype")).isFalse();
    assertVerified(renamed, output);
  }

  private static String v4(String name) {
    return name.replace("language_model.model.", "").replace("block_sparse_moe", "ffn");
  }

  /** The scale 2^-7 everywhere, in every form that FP8 has: values are values, whatever their dtype. */
  @Test
  void theSameScalesGiveTheSameBytesInEveryForm() throws Exception {
    String blocks = "\"weight_block_size\": [128, 128],";
    Path expected = quantize(
        constantScales("blocks", blocks, "weight_scale_inv", DType.F32, List.of(2L, 2L)), "expected", Map.of());

    for (Path source : List.of(
        constantScales("bf16", blocks, "weight_scale_inv", DType.BF16, List.of(2L, 2L)),
        constantScales("e8m0", blocks, "scale", DType.F8_E8M0, List.of(2L, 2L)),
        constantScales("u8", blocks + "\"scale_fmt\": \"ue8m0\",", "weight_scale", DType.U8, List.of(2L, 2L)),
        constantScales("tensor", "", "weight_scale", DType.F32, List.of()),
        constantScales("channel", "", "weight_scale", DType.BF16, null))) {
      Path output = quantize(source, "of " + source.getFileName(), Map.of());

      Outputs.assertSame(expected, output);
    }

    assertVerified(folder.resolve("channel"), folder.resolve("of channel"));
    Outputs.assertSame(expected, quantize(
        folder.resolve("channel"), "cut", Map.of("spark.fp4.unitBytes", "5000")));
    Outputs.assertSame(expected, quantize(
        folder.resolve("tensor"), "cut tensor", Map.of("spark.fp4.unitBytes", "5000")));
  }

  /** {@code shape} null for a scale a row. */
  private Path constantScales(String name, String block, String part, DType dtype, List<Long> shape) throws Exception {
    byte[] value = switch (dtype) {
      case F32 -> new byte[] {0, 0, 0, 0x3C};
      case BF16 -> new byte[] {0, 0x3C};
      default -> new byte[] {120};
    };
    Map<String, StoredTensor> source = new TreeMap<>();
    Map<String, StoredTensor> golden = CheckpointFiles.read(CheckpointFiles.golden("deepseek_v3_fp8"));
    golden.forEach((tensor, stored) -> {
      if (!tensor.endsWith(".weight_scale_inv")) {
        source.put(tensor, stored);
        return;
      }

      long rows = golden.get(tensor.replace("_scale_inv", "")).shape().get(0);
      List<Long> form = shape == null ? List.of(rows, 1L) : shape;
      ByteBuffer data =
          ByteBuffer.allocate((int) form.stream().mapToLong(Long::longValue).reduce(value.length, (x, y) -> x * y));
      while (data.hasRemaining()) {
        data.put(value);
      }

      source.put(tensor.replace("weight_scale_inv", part), new StoredTensor(dtype, form, data.array()));
    });
    return write(name, source, """
        {"model_type": "deepseek_v3", "hidden_size": 256, "moe_intermediate_size": 192, "n_routed_experts": 3,
         "num_hidden_layers": 2, "quantization_config": {%s "quant_method": "fp8"}}""".formatted(block));
  }

  private Path write(String name, Map<String, StoredTensor> tensors, String config) throws Exception {
    Path source = Files.createDirectory(folder.resolve(name));
    CheckpointFiles.write(source.resolve("model.safetensors"), tensors);
    Files.writeString(source.resolve("config.json"), config);
    return source;
  }

  private Path quantize(Path source, String name, Map<String, String> conf, String... more) {
    Path output = folder.resolve(name);
    InProcess run = new InProcess();
    conf.forEach(run::conf);
    List<String> arguments = new ArrayList<>(List.of(
        "quantize", "--input", source.toString(), "--output", output.toString(), "--scale-search", "rtn"));
    arguments.addAll(List.of(more));
    SparkSubmitResult result = run.run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    return output;
  }

  private static void poison(Path checkpoint, String tensor, int at, int bits) throws Exception {
    set(checkpoint, tensor, at, CheckpointFiles.read(checkpoint).get(tensor).data()[at] ^ bits);
  }

  private static void set(Path checkpoint, String name, int at, int value) throws Exception {
    LocatedTensor tensor = Checkpoint.open(new Configuration(), checkpoint.toString()).tensor(name).orElseThrow();
    try (RandomAccessFile file = new RandomAccessFile(checkpoint.resolve(tensor.file()).toFile(), "rw")) {
      file.seek(tensor.offset() + at);
      file.write(ByteBuffer.allocate(1).order(ByteOrder.LITTLE_ENDIAN).put(0, (byte) value).array());
    }
  }
}

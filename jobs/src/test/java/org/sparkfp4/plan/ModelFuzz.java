package org.sparkfp4.plan;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.ModelFamilies;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.fuzz.Hostile;
import org.sparkfp4.layouts.Layouts;
import org.sparkfp4.safetensors.SafetensorsHeader;

/** Any header and any config.json as a model: it is refused, or planned to the last byte and given its own configs. */
class ModelFuzz {
  private static final ModelFamilies FAMILIES = ModelFamilies.builtIn();
  private static final Pattern END = Pattern.compile("(\\d{1,18})\\]");

  @FuzzTest
  void model(byte[] data) {
    byte[][] files = Hostile.split(data, 2);
    for (String layout : List.of("modelopt", "compressed-tensors")) {
      Hostile.read(data.length, () -> plan(
          tensors(files[0]),
          Checkpoint.parseConfig("model", new ByteArrayInputStream(files[1])),
          Layouts.named(layout)));
    }
  }

  private static void plan(List<LocatedTensor> tensors, JsonNode config, Layout layout) {
    PlanOptions options =
        new PlanOptions(
            layout.name(), "rtn", "linears", false, 0, new Selection(List.of(), List.of(), false, false), false, null);
    PlanSource source =
        new PlanSource("file:/model", config, List.of(new SourceFile("model.safetensors", 1, 1)), tensors);
    QuantizationPlan plan =
        new Planner(source, FAMILIES.of(new ModelConfig(config)), layout, options, 1 << 20, null).plan();

    for (OutputShard shard : plan.shards()) {
      long end = 0;
      for (ShardItem item : shard.items()) {
        for (var output : item.outputs()) {
          assertThat(output.begin()).as("begin of %s", output).isEqualTo(end);
          end = output.end();
        }
      }

      assertThat(shard.dataBytes()).isEqualTo(end);
    }

    assertThat(layout.configs((ObjectNode) config, plan)).isNotEmpty();
  }

  /** The tensors of a header, of a file that is as long as the header says. */
  private static List<LocatedTensor> tensors(byte[] json) throws IOException {
    long end = 0;
    for (Matcher matcher = END.matcher(new String(json, StandardCharsets.ISO_8859_1)); matcher.find(); ) {
      end = Math.max(end, Long.parseLong(matcher.group(1)));
    }

    byte[] start = ByteBuffer.allocate(8 + json.length).order(ByteOrder.LITTLE_ENDIAN)
        .putLong(json.length).put(json).array();
    SafetensorsHeader header =
        SafetensorsHeader.parse("model.safetensors", new ByteArrayInputStream(start), start.length + end);
    return header.tensors().stream()
        .map(tensor -> new LocatedTensor(tensor.name(), tensor.dtype(), tensor.shape(), "model.safetensors",
            header.dataStart() + tensor.begin(), tensor.length()))
        .toList();
  }
}

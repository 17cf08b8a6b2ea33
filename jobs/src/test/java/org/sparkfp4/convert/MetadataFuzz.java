package org.sparkfp4.convert;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.fuzz.Hostile;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.ExpertShape;
import org.sparkfp4.layouts.Layouts;
import org.sparkfp4.layouts.StackPart;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.PlanOptions;

/** Any text as a file's metadata of stacked experts, and any config.json, beside the tensors of a layer. */
class MetadataFuzz {
  private static final ExpertLayout LAYOUT = ExpertLayout.CUBLAS_128X4;
  private static final List<Layout> LAYOUTS = List.of(Layouts.named("modelopt"), Layouts.named("compressed-tensors"));

  @FuzzTest
  void metadata(byte[] data) {
    byte[][] files = Hostile.split(data, 2);
    String text = new String(files[0], StandardCharsets.UTF_8);
    List<LocatedTensor> tensors = tensors();

    for (String key : List.of(StackDescription.KEY + "m.experts", GlobalScale.KEY + "m.weight_scale_2")) {
      Hostile.read(data.length, () -> plan(tensors, Map.of(key, text), files[1]));
    }
  }

  private static void plan(List<LocatedTensor> tensors, Map<String, String> metadata, byte[] file) throws IOException {
    JsonNode config = file.length == 0
        ? JsonNodeFactory.instance.objectNode()
        : Checkpoint.parseConfig("model", new ByteArrayInputStream(file));
    SourceModel model = SourceModel.of(tensors, metadata, config);
    for (Layout layout : LAYOUTS) {
      new ConvertPlanner(model, layout.name(), InitializerNames.byPath(), 0).files();
      PlanOptions options = new PlanOptions(layout.name(), "as-stored", "as-stored", model.isWeightOnly(), 0);
      assertThat(layout.configs(model.config().deepCopy(), ConvertedModules.of(model, options))).isNotEmpty();
    }
  }

  private static List<LocatedTensor> tensors() {
    ExpertShape shape = new ExpertShape(true, 1, 16, 16);
    List<LocatedTensor> tensors = new ArrayList<>();
    for (StackPart part : LAYOUT.parts()) {
      List<Long> sides = LAYOUT.shapeOf(shape, part);
      long bytes = LAYOUT.dtype(part).bytes(sides.stream().reduce(1L, Math::multiplyExact));
      tensors.add(new LocatedTensor(LAYOUT.nameOf(part), LAYOUT.dtype(part), sides, "model.safetensors", 0, bytes));
    }

    return tensors;
  }
}

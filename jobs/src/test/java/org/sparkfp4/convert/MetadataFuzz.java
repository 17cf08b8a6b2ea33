package org.sparkfp4.convert;

import com.code_intelligence.jazzer.junit.FuzzTest;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.fuzz.Hostile;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.ExpertShape;
import org.sparkfp4.layouts.StackPart;

/** Any text as a file's metadata of stacked experts, beside the tensors of a layer. */
class MetadataFuzz {
  private static final ExpertLayout LAYOUT = ExpertLayout.CUBLAS_128X4;

  @FuzzTest
  void metadata(byte[] data) {
    String text = new String(data, StandardCharsets.UTF_8);
    List<LocatedTensor> tensors = tensors();

    Hostile.read(data.length, () -> {
      Map<String, String> metadata =
          Map.of(StackDescription.KEY + "m.experts", text, GlobalScale.KEY + "m.weight_scale_2", text);
      for (Map.Entry<String, String> entry : metadata.entrySet()) {
        SourceModel model = SourceModel.of(
            tensors, Map.of(entry.getKey(), entry.getValue()), JsonNodeFactory.instance.objectNode());
        new ConvertPlanner(model, "modelopt", InitializerNames.byPath(), 0).files();
      }
    });
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

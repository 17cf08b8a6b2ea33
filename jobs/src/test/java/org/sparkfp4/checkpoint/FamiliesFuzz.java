package org.sparkfp4.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.sparkfp4.fuzz.Hostile;

/** Any file as a table of model families, and any tensor's name under them. */
class FamiliesFuzz {
  private static final List<String> NAMES = List.of(
      "model.layers.3.mlp.experts.17.down_proj", "model.layers.99999999999999999999.mlp", "lm_head", "",
      "a".repeat(200) + ".1.".repeat(50));

  @FuzzTest
  void families(byte[] data) {
    byte[][] files = Hostile.split(data, 2);
    Hostile.read(data.length, () -> {
      ModelFamilies families = ModelFamilies.ofFile("families.json", files[0]);

      for (ModelFamily family : families.all()) {
        for (String name : NAMES) {
          family.known(name);
          family.role(name + ".weight");
          assertThat(family.layer(name + ".weight")).isGreaterThanOrEqualTo(-1);
        }

        family.known(new String(files[1], StandardCharsets.UTF_8));
      }
    });
  }
}

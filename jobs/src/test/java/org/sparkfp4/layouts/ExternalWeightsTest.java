package org.sparkfp4.layouts;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.junit.jupiter.api.Test;

class ExternalWeightsTest {
  private static final String OTHER = "{\"external_weight_files\": [{\"file\": \"a\", \"kind\": \"lm_head\"}]}";

  private static ObjectNode config(String json) throws Exception {
    return (ObjectNode) new ObjectMapper().readTree(json);
  }

  @Test
  void entriesOfOtherKindsStay() throws Exception {
    ObjectNode config = config(OTHER);
    ExternalWeights.describe(config, List.of("x", "y"));
    assertThat(config.path("external_weight_files")).hasSize(2);
    assertThat(config.at("/external_weight_files/0/kind").asText()).isEqualTo("lm_head");
    assertThat(config.at("/external_weight_files/1/file").asText()).isEqualTo(ExternalWeights.FILE);

    ExternalWeights.forget(config);

    assertThat(config).isEqualTo(config(OTHER));
  }

  @Test
  void theListGoesWithItsLastEntry() throws Exception {
    ObjectNode config = config("{\"a\": 1}");
    ExternalWeights.describe(config, List.of());
    ExternalWeights.forget(config);
    assertThat(config).isEqualTo(config("{\"a\": 1}"));
  }
}

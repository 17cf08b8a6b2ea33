package org.sparkfp4.convert;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.sparkfp4.layouts.LoadingAdvice;
import org.sparkfp4.output.RoundedScales;

class ConvertCardTest {
  private static String card(String source, String target) {
    return ConvertCard.text(source, new ConvertPlan("f", "file:/in", target, List.of(), List.of()), false,
        RoundedScales.NONE, "Spark FP4 9.9");
  }

  private static int count(String text, String part) {
    return text.split(Pattern.quote(part), -1).length - 1;
  }

  @Test
  void saysWhatLoadsTheLayoutThatItHas() {
    String head = "---\nlicense: mit\n---\n\n| | |\n| --- | --- |\n| layout | modelopt |\n\n";
    String source = head + LoadingAdvice.text("modelopt", false, false);
    assertThat(source).contains("vllm serve DIR", "trtllm-serve DIR");

    String stacked = card(source, "trt-edge-llm-sm110");

    assertThat(stacked).startsWith(head.replace("modelopt", "trt-edge-llm-sm110").stripTrailing() + "\n\n## Layout\n")
        .contains("Nvfp4MoePlugin", "`sparkfp4 convert --to modelopt`")
        .doesNotContain("vllm serve", "trtllm-serve", "launch_server");

    String back = card(stacked, "compressed-tensors");

    assertThat(back).contains("| layout | compressed-tensors |", "vllm serve DIR")
        .doesNotContain("Nvfp4MoePlugin", "modelopt_fp4");
    assertThat(count(back, "## Layout")).isEqualTo(1);
    assertThat(count(back, "## Use")).isEqualTo(1);
  }

  @Test
  void partsOfOthersStay() {
    String source = "# A model\n\n## Use\n\nAsk it kindly.\n\n## Layout\n\nTwo columns.\n";

    assertThat(card(source, "modelopt")).startsWith(source.stripTrailing());
    assertThat(card("", "modelopt")).startsWith("## Layout\n");
  }
}

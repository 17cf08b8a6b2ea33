package org.sparkfp4.verify;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ModulePatternTest {
  private static final String MODULE = "model.language_model.layers.59.mlp.experts.383.gate_up_proj";

  @Test
  void expressionsOfRuntimesAreMatched() {
    assertThat(ModulePattern.nameOrRegex("re:.*layers\\.(5[0-9]|60)\\.mlp\\..*(gate|up|down)_.*proj").excludes(MODULE))
        .isTrue();
    assertThat(ModulePattern.nameOrRegex("re:.*vision.*tower.*block.*").excludes(MODULE)).isFalse();
    assertThat(ModulePattern.glob("*layers*mlp*experts*vision*").excludes(MODULE)).isFalse();
    assertThat(ModulePattern.glob("model.*.gate_up_proj").excludes(MODULE)).isTrue();
  }

  /** Java's matcher would need years for the first, and Python's too. */
  @ParameterizedTest
  @ValueSource(strings = {"re:(.*)*(.*)*(.*)*(.*)*x", "re:(([a-z._0-9]+)+)+!"})
  void expressionsWithoutEndAreRefused(String text) {
    ModulePattern pattern = ModulePattern.nameOrRegex(text);
    assertThatThrownBy(() -> pattern.excludes(MODULE)).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid pattern of modules \"" + text + "\" in the configuration: it takes too long to find out "
            + "whether it means " + MODULE + ", for runtimes too; name the modules in plainer words");
  }

  @Test
  void starsWithoutEndAreRefused() {
    ModulePattern pattern = ModulePattern.glob("*e*e*e*e*e*e*e*e*!");
    assertThatThrownBy(() -> pattern.excludes(MODULE.repeat(4))).isInstanceOf(IllegalArgumentException.class);
  }

  /** A matcher calls itself for each character of a group: of a long name until the stack ends. */
  @Test
  void namesOfAnyLengthEndInWords() {
    ModulePattern pattern = ModulePattern.nameOrRegex("re:(a|b)*c");
    assertThatThrownBy(() -> pattern.excludes("ab".repeat(1 << 20))).isInstanceOf(IllegalArgumentException.class);
  }
}

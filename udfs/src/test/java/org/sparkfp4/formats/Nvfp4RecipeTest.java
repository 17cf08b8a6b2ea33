package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.sparkfp4.formats.Nvfp4Recipe.COMPRESSED_TENSORS;
import static org.sparkfp4.formats.Nvfp4Recipe.MODELOPT;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class Nvfp4RecipeTest {
  private static final float ZERO_LIMIT = 2688 * 0x1p-126f;

  @ParameterizedTest
  @EnumSource
  void modeloptRoundsNothingToTheSourcesType(ElementType type) {
    assertThat(MODELOPT.globalScale(0.0703125f, type)).isEqualTo(0.0703125f / 2688f);
    assertThat(MODELOPT.blockScale(0.013f, 1e-4f, type)).isEqualTo(Grid.E4M3_VALUES.nearest(0.013f / (6f * 1e-4f)));
    assertThat(MODELOPT.dequantFactor(0x39, 3e-5f)).isEqualTo(1.125f * 3e-5f);
  }

  @ParameterizedTest
  @CsvSource({"0.259765625, 10304, 0x1.435e52p13", "0.3125, 8640, 0x1.0cccce0p13", "0.32421875, 8256, 0x1.031596p13",
      "0.3671875, 7296, 0x1.c9882ap12"})
  void compressedTensorsTakesAReciprocalAndAProduct(float amax, float fromBf16, float fromWider) {
    assertThat(COMPRESSED_TENSORS.globalScale(amax, ElementType.BF16)).isEqualTo(fromBf16);
    assertThat(COMPRESSED_TENSORS.globalScale(amax, ElementType.F16)).isEqualTo(fromWider);
    assertThat(COMPRESSED_TENSORS.globalScale(amax, ElementType.F32)).isEqualTo(fromWider);
  }

  @ParameterizedTest
  @CsvSource({"0.01251220703125, 0x5C, 0x5B", "0.01361083984375, 0x5D, 0x5C", "0.0250244140625, 0x64, 0x63"})
  void compressedTensorsRoundsASixthOfTheBlocksAmaxToBFloat16(float blockAmax, String fromBf16, String fromWider) {
    assertThat(COMPRESSED_TENSORS.blockScale(blockAmax, 11008, ElementType.BF16)).isEqualTo(Integer.decode(fromBf16));
    assertThat(COMPRESSED_TENSORS.blockScale(blockAmax, 11008, ElementType.F16)).isEqualTo(Integer.decode(fromWider));
    assertThat(COMPRESSED_TENSORS.blockScale(blockAmax, 11008, ElementType.F32)).isEqualTo(Integer.decode(fromWider));
  }

  @Test
  void compressedTensorsDequantizesByADivision() {
    assertThat(COMPRESSED_TENSORS.dequantFactor(0x39, 10304)).isEqualTo(1.125f / 10304f);
  }

  @Test
  void blockScaleStaysWithinItsRange() {
    ElementType type = ElementType.F32;
    assertThat(MODELOPT.blockScale(1e9f, 1, type)).isEqualTo(0x7E);
    assertThat(COMPRESSED_TENSORS.blockScale(1e9f, 1, type)).isEqualTo(0x7E);
    // all but nothing beside the tensor's amax: ModelOpt clamps before the cast, compressed-tensors mends after it
    assertThat(MODELOPT.blockScale(1e-6f, 1, type)).isEqualTo(0x01);
    assertThat(COMPRESSED_TENSORS.blockScale(1e-6f, 1, type)).isEqualTo(0x20);
    assertThat(COMPRESSED_TENSORS.blockScale(6 * 0x1p-9f, 1, type)).isEqualTo(0x01);
    // the quotient itself vanishes
    assertThat(MODELOPT.blockScale(Float.MIN_VALUE, 1, type)).isEqualTo(0x38);
  }

  @ParameterizedTest
  @EnumSource
  void zeroBlockAndZeroTensor(Nvfp4Recipe recipe) {
    int zeroScale = recipe == MODELOPT ? 0x38 : 0x20;
    float zeroGlobalScale = recipe == MODELOPT ? 1 / 2688f : 1;
    assertThat(recipe.zeroScale()).isEqualTo(zeroScale);
    for (ElementType type : ElementType.values()) {
      assertThat(recipe.blockScale(0, 0.25f, type)).isEqualTo(zeroScale);
      assertThat(recipe.globalScale(0, type)).isEqualTo(zeroGlobalScale);
      assertThat(recipe.globalScale(Float.MIN_VALUE, type)).isEqualTo(zeroGlobalScale);
      assertThat(recipe.globalScale(Math.nextDown(ZERO_LIMIT), type)).isEqualTo(zeroGlobalScale);
    }
  }

  @Test
  void theSmallestAmaxHasANormalGlobalScale() {
    assertThat(MODELOPT.globalScale(ZERO_LIMIT, ElementType.F32)).isEqualTo(Float.MIN_NORMAL);
    assertThat(COMPRESSED_TENSORS.globalScale(ZERO_LIMIT, ElementType.BF16)).isBetween(0x1.fp125f, 0x1.1p126f);
  }

  @Test
  void everyBFloat16AmaxHasAUsableGlobalScale() {
    for (int bits = 0; bits < 0x7F80; bits++) {
      float amax = BFloat16.toFloat((short) bits);
      for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
        float globalScale = recipe.globalScale(amax, ElementType.BF16);
        assertThat(globalScale > 0 && Float.isFinite(globalScale)).as("%s %s", recipe, amax).isTrue();
        assertThat(recipe.dequantFactor(0x01, globalScale)).as("%s %s", recipe, amax).isPositive();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(floats = {-1f, Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY})
  void refusesAnAmaxThatIsNone(float amax) {
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      assertThatThrownBy(() -> recipe.globalScale(amax, ElementType.F32))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("Invalid amax: " + amax + ", must be finite and not negative");
    }
  }
}

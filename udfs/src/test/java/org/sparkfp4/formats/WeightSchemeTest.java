package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class WeightSchemeTest {
  @ParameterizedTest
  @ValueSource(strings = {"E4M3/F32/128x128", "E2M1/E8M0/1x32", "INT4/BF16/1x128", "E4M3/F16/*x*", "E4M3/BF16/1x*"})
  void textIsParsed(String text) {
    assertThat(WeightScheme.parse(text).text()).isEqualTo(text);
  }

  @Test
  void anyNumberBelowOneMeansAll() {
    assertThat(new WeightScheme(CodeType.E4M3, ScaleType.F32, -1, 0)).isEqualTo(WeightScheme.parse("E4M3/F32/*x*"));
  }

  @ParameterizedTest
  @CsvSource({"E4M3/F32/128x128, 300, 272, 81600, 36", "E4M3/BF16/*x*, 300, 272, 81600, 2",
      "E4M3/F32/1x*, 300, 272, 81600, 1200", "INT4/BF16/1x32, 10, 96, 480, 60", "E2M1/E8M0/1x32, 10, 80, 400, 30",
      "INT4/F16/1x32, 3, 33, 60, 12", "E4M3/F32/128x128, 0, 256, 0, 0"})
  void bytesOfATensor(String text, long rows, long cols, long codeBytes, long scaleBytes) {
    WeightScheme scheme = WeightScheme.parse(text);
    assertThat(scheme.codeBytes(rows, cols)).isEqualTo(codeBytes);
    assertThat(scheme.scaleBytes(rows, cols)).isEqualTo(scaleBytes);
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
      "BF16 | Invalid weight scheme: BF16, must be like E4M3/F32/128x128 or E4M3/BF16/1x*",
      "E5M2/F32/1x16 | Invalid weight scheme: E5M2/F32/1x16, E5M2 is none of [E4M3, INT4, E2M1]",
      "E4M3/U8/1x16 | Invalid weight scheme: E4M3/U8/1x16, U8 is none of [F32, BF16, F16, E8M0]",
      "E4M3/F32/0x16 | Invalid weight scheme: E4M3/F32/0x16, a block has no rows or columns",
      "E4M3/F32/1x99999999999999999999 | Invalid weight scheme: E4M3/F32/1x99999999999999999999, "
          + "99999999999999999999 is too large",
      "E4M3/F32/128x24 | Invalid scale block: 24 columns of E4M3, must be a multiple of 16 so that a block of NVFP4 "
          + "has one source scale"})
  void refused(String text, String message) {
    assertThatThrownBy(() -> WeightScheme.parse(text)).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }
}

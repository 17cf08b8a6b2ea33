package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class CodeTypeTest {
  @Test
  void everyInt4() {
    for (int code = 0; code < 16; code++) {
      assertThat(CodeType.INT4.decode(code)).isEqualTo(code - 8f);
      assertThat(CodeType.INT4.decode(0xF0 | code)).isEqualTo(code - 8f);
    }
  }

  @Test
  void floatingPointCodesAreTheirFormats() {
    for (int code = 0; code < 127; code++) {
      assertThat((double) CodeType.E4M3.decode(code)).isEqualTo(Grid.E4M3_VALUES.value(code));
      assertThat((double) CodeType.E4M3.decode(code | 0x80)).isEqualTo(-Grid.E4M3_VALUES.value(code));
    }

    for (int code = 0; code < 8; code++) {
      assertThat((double) CodeType.E2M1.decode(code)).isEqualTo(Grid.E2M1_VALUES.value(code));
      assertThat((double) CodeType.E2M1.decode(0xF8 | code)).isEqualTo(-Grid.E2M1_VALUES.value(code));
    }

    assertThat(CodeType.E4M3.decode(0x7F)).isNaN();
    assertThat(CodeType.E4M3.decode(0xFF)).isNaN();
  }

  @Test
  void rowsAreWholeWords() {
    assertThat(CodeType.E4M3.rowBytes(7)).isEqualTo(7);
    assertThat(CodeType.E2M1.rowBytes(7)).isEqualTo(4);
    assertThat(CodeType.INT4.rowBytes(7)).isEqualTo(4);
    assertThat(CodeType.INT4.rowBytes(9)).isEqualTo(8);
    assertThat(CodeType.INT4.rowBytes(32)).isEqualTo(16);
  }
}

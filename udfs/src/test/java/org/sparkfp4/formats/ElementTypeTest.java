package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class ElementTypeTest {
  @ParameterizedTest
  @EnumSource
  void isNamedAsInSafetensors(ElementType type) {
    assertThat(ElementType.of(type.name())).isSameAs(type);
    assertThat(type.bytes()).isEqualTo(type == ElementType.F32 ? 4 : 2);
  }

  @ParameterizedTest
  @NullSource
  @ValueSource(strings = {"F8_E4M3", "bf16", ""})
  void refusesOtherTypes(String dtype) {
    assertThatThrownBy(() -> ElementType.of(dtype))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid dtype: " + dtype + ", must be BF16, F16 or F32");
  }

  @Test
  void loadsLittleEndianAtAnyOffset() {
    ByteBuffer data = ByteBuffer.wrap(new byte[] {9, (byte) 0x80, (byte) 0xBF, 0x00, 0x3E, 0x00, 0x00, 0x20, 0x41})
        .order(ByteOrder.LITTLE_ENDIAN);

    assertThat(ElementType.BF16.load(data, 1)).isEqualTo(-1f);
    assertThat(ElementType.F16.load(data, 3)).isEqualTo(1.5f);
    assertThat(ElementType.F32.load(data, 5)).isEqualTo(10f);
  }

  @ParameterizedTest
  @EnumSource
  void loadsInBulkWhatItLoadsOneByOne(ElementType type) {
    ByteBuffer data = ByteBuffer.allocate(1 + 3 * type.bytes()).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < data.capacity(); i++) {
      data.put(i, (byte) (17 * i + 3));
    }

    float[] bulk = new float[3];
    type.load(data, 1, bulk);

    for (int i = 0; i < bulk.length; i++) {
      assertThat(bulk[i]).isEqualTo(type.load(data, 1 + i * type.bytes()));
    }
  }
}

package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Against SHA-256 digests of what Edge-LLM's own packers made, and of its formulas. */
class LayoutDigestTest {
  private static final int UP = 10;
  private static final int GATE = 20;
  private static final int DOWN = 30;

  @Test
  void theBytesAreThoseThatTheDigestsWereMadeOf() {
    assertThat(Arrays.copyOf(LayoutBytes.codes(10, 2, 16), 8))
        .containsExactly(unsigned(191, 54, 237, 166, 247, 186, 194, 200));
    assertThat(Arrays.copyOf(LayoutBytes.scales(10, 8, 16), 8)).containsExactly(8, 91, 108, 47, 27, 25, 122, 41);
  }

  @ParameterizedTest
  @CsvSource({
    "INTERLEAVED_64, 866a00e6f1fa5f8dbd1969981591a8f0cc3e5032603708e09e80c00f009f6c19, "
        + "94ed85ed46b566008e68c5a424224b6cd7c5009d11b1d3cd1437cef0d03d01b6",
    "CONCATENATED, d035488f83a37fe8bcaf34fe08421100387ac585c5eb919b660bdc2a34e57909, "
        + "a4b446698c85b0c78f0466d36534c823b116648f84b8ee9cbe957493cb39519d"})
  void gatedFc1(RowOrder order, String codes, String scales) {
    Arrangement shape = new Arrangement(order, 2, 128, 128, 256, 256);
    assertThat(codes(CodeLayout.ROW_MAJOR, shape, 2, UP, GATE)).isEqualTo(codes);
    assertThat(scales(BlockScaleLayout.ATOM_128X4, shape, 2, UP, GATE)).isEqualTo(scales);
    // Whoever takes gate for up is found out.
    assertThat(codes(CodeLayout.ROW_MAJOR, shape, 2, GATE, UP)).isNotEqualTo(codes);
    assertThat(scales(BlockScaleLayout.ATOM_128X4, shape, 2, GATE, UP)).isNotEqualTo(scales);
  }

  @Test
  void gatedFc2() {
    Arrangement shape = Arrangement.plain(256, 128);
    assertThat(codes(CodeLayout.ROW_MAJOR, shape, 2, DOWN))
        .isEqualTo("342a24aee996bbd20f139b972043cbfb97f6e0da158f91f5dbd30a8813c82fa7");
    assertThat(scales(BlockScaleLayout.ATOM_128X4, shape, 2, DOWN))
        .isEqualTo("d4984dcb26f151b03fc59532fff87563fbc4aee02808d2d0a57bb3a4e6b44c7f");
  }

  @Test
  void ungatedFc1WithPaddedRows() {
    Arrangement shape = new Arrangement(RowOrder.PLAIN, 1, 160, 256, 192, 192);
    assertThat(codes(CodeLayout.ROW_MAJOR, shape, 2, UP))
        .isEqualTo("094499202009f4919bd3472044d1002ab466790e4facd35716918fd69c90bc8a");
    assertThat(scales(BlockScaleLayout.ATOM_128X4, shape, 2, UP))
        .isEqualTo("ebb0479efc61467d066efc85509e6b3e5c46cb835bdb82caa6a2b23917beddef");
  }

  @Test
  void ungatedFc2WithPaddedColumns() {
    Arrangement shape = new Arrangement(RowOrder.PLAIN, 1, 192, 192, 160, 256);
    assertThat(codes(CodeLayout.ROW_MAJOR, shape, 2, DOWN))
        .isEqualTo("ce3a1519b0e9121e057da6b1bf297d6cb8a089e15fcd5192e9b0cbe49f507b12");
    assertThat(scales(BlockScaleLayout.ATOM_128X4, shape, 2, DOWN))
        .isEqualTo("46d009ff2e9df7d7a89a9dbadb0f99d72d2a1f2268c6f495892e5054782bb0aa");
  }

  @Test
  void blackwellMoeTiles() {
    Arrangement up = Arrangement.plain(192, 256);
    assertThat(codes(CodeLayout.BLACKWELL_MOE_N128_K64, up, 1, UP))
        .isEqualTo("8478ec5281ed79819f955cdfc161442c33de7897e8b98a5e22d829f1e8d42230");
    assertThat(scales(BlockScaleLayout.BLACKWELL_N128_K64, up, 1, UP))
        .isEqualTo("6e8822b72cfa1c53d62147ecf01778710a77ad10949513111d2f4169d334e625");
    Arrangement down = Arrangement.plain(256, 192);
    assertThat(codes(CodeLayout.BLACKWELL_MOE_N128_K64, down, 1, DOWN))
        .isEqualTo("0a1d427560ece112969f7f6b2b02a6ddf69e68f7d7670d97832f1a1a9995ff34");
    assertThat(scales(BlockScaleLayout.BLACKWELL_N128_K64, down, 1, DOWN))
        .isEqualTo("62258a4299d0c06d39419638c5d75327596580e8bf5661a6630174000f90e981");
  }

  @Test
  void marlin() {
    Arrangement shape = Arrangement.plain(128, 256);
    assertThat(codes(CodeLayout.MARLIN, shape, 1, UP))
        .isEqualTo("aea1d23aeaa378a27863de4e90ff306980b424748b7d3975f7e74f22ea42e132");
    assertThat(scales(BlockScaleLayout.MARLIN_E4M3, shape, 1, UP))
        .isEqualTo("6d97ff35f45ee58bba037d138cfd657b690b1592e7d18747decc853aab073780");
    assertThat(scales(BlockScaleLayout.MARLIN_S0E5M3, shape, 1, UP))
        .isEqualTo("7d8127f3f4ca45a691b20a231dbb535cc6bce4a9b7ad03bdb085c1806236edda");
  }

  private static String codes(CodeLayout layout, Arrangement shape, int experts, int... members) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (int expert = 0; expert < experts; expert++) {
      Bytes[] sources = new Bytes[members.length];
      for (int i = 0; i < members.length; i++) {
        sources[i] = Bytes.of(LayoutBytes.codes(1000 * expert + members[i], (int) shape.rows(), (int) shape.k()));
      }

      byte[] out = new byte[(int) layout.bytes(shape.matrixRows(), shape.paddedK())];
      layout.arrange(shape, sources, Bytes.of(out));
      all.writeBytes(out);
    }

    return LayoutBytes.sha256(all.toByteArray());
  }

  private static String scales(BlockScaleLayout layout, Arrangement shape, int experts, int... members) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (int expert = 0; expert < experts; expert++) {
      Bytes[] sources = new Bytes[members.length];
      for (int i = 0; i < members.length; i++) {
        sources[i] = Bytes.of(LayoutBytes.scales(1000 * expert + members[i], (int) shape.rows(), (int) shape.k()));
      }

      byte[] out = new byte[(int) layout.bytes(shape.matrixRows(), shape.paddedColumns())];
      layout.arrange(shape, sources, 1, Bytes.of(out));
      all.writeBytes(out);
    }

    return LayoutBytes.sha256(all.toByteArray());
  }

  private static byte[] unsigned(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < values.length; i++) {
      bytes[i] = (byte) values[i];
    }

    return bytes;
  }
}

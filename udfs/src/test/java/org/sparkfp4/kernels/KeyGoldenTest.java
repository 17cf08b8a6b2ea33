package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.GoldenFile;
import org.sparkfp4.formats.ScaleRule;

/** Every tier against what the reference producer made on a GPU. */
class KeyGoldenTest {
  private static final int COLS = 128;

  static List<KeyKernel> kernels() {
    return KeyKernels.available();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void tensorsAreEqualButForTheScalesThatALogarithmRoundsDown(KeyKernel kernel) {
    GoldenFile golden = GoldenFile.open("mxfp4_tensors");
    int compared = 0;
    for (String name : golden.names()) {
      if (name.endsWith(".x")) {
        String tensor = name.substring(0, name.length() - 2);
        GoldenFile.Tensor x = golden.tensor(name);
        Mxfp4Rows rows = Mxfp4Rows.of(kernel, ScaleRule.CEIL, ElementType.of(x.dtype()), x.bytes(), COLS);
        byte[] packed = golden.tensor(tensor + ".packed").bytes();
        byte[] scales = golden.tensor(tensor + ".ue8m0").bytes();
        if (tensor.equals("boundary_fp32")) {
          checkBoundaries(x.data(), rows, packed, scales);
        } else {
          assertThat(rows.scales()).as("%s scales", tensor).isEqualTo(scales);
          assertThat(rows.packed()).as("%s codes", tensor).isEqualTo(packed);
        }

        compared++;
      }
    }

    assertThat(compared).isEqualTo(7);
  }

  /**
   * A block differs only where its largest magnitude is 1 to 33 ulp above 1.5 * 2^k and the scale is one lower. Whether it
   * does there is for the producer's approximate logarithm to say: in this file, of 58 blocks.
   */
  private static void checkBoundaries(ByteBuffer x, Mxfp4Rows rows, byte[] packed, byte[] scales) {
    int differing = 0;
    for (int block = 0; block < scales.length; block++) {
      int amax = 0;
      for (int i = 0; i < 32; i++) {
        amax = Math.max(amax, x.getInt(x.position() + (block * 32 + i) * 4) & 0x7FFF_FFFF);
      }

      int above = (amax & 0x7F_FFFF) - 0x40_0000;
      boolean equal = rows.scales()[block] == scales[block];
      if (!equal) {
        assertThat(above).as("ulp above the boundary in block %d", block).isBetween(1, 33);
        assertThat(rows.scales()[block]).isEqualTo((byte) (scales[block] + 1));
        differing++;
      } else {
        for (int i = block * 16; i < block * 16 + 16; i++) {
          assertThat(rows.packed()[i]).as("byte %d of block %d", i, block).isEqualTo(packed[i]);
        }
      }
    }

    assertThat(differing).isEqualTo(58);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void queriesAreEqual(KeyKernel kernel) {
    GoldenFile golden = GoldenFile.open("mxfp4_query");
    GoldenFile.Tensor query = golden.tensor("index_q");
    int tokens = (int) query.shape()[0];
    int heads = (int) query.shape()[1];
    int padded = (int) golden.tensor("q_scale").shape()[1];
    NativeMemory q = NativeMemory.of(query.bytes(), 2);
    NativeMemory w = NativeMemory.of(golden.tensor("index_weights").bytes(), 0);
    NativeMemory packed = NativeMemory.room(tokens * padded * 64, 1);
    NativeMemory scales = NativeMemory.room(tokens * padded * 4, 3);
    NativeMemory weights = NativeMemory.room(tokens * padded * 4, 2);
    kernel.quantizeQuery(ScaleRule.CEIL, ElementType.BF16, q.address(), ElementType.BF16, w.address(),
        golden.tensor("weight_scale").scalar(), tokens, heads, padded, packed.address(), scales.address(),
        weights.address());
    assertThat(packed.bytes()).isEqualTo(golden.tensor("q_packed").bytes());
    assertThat(scales.bytes()).isEqualTo(golden.tensor("q_scale").bytes());
    assertThat(weights.bytes()).isEqualTo(golden.tensor("weights").bytes());
    for (NativeMemory memory : List.of(q, w, packed, scales, weights)) {
      memory.checkGuards();
    }
  }
}

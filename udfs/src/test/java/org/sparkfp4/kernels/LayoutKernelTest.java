package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.sparkfp4.formats.Arrangement;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.BlockScaleLayout;
import org.sparkfp4.formats.Bytes;
import org.sparkfp4.formats.CodeLayout;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.NVFP4Tensor;
import org.sparkfp4.formats.RowOrder;

/** Every tier against the reference of {@code formats}, on random shapes at any alignment. */
class LayoutKernelTest {
  private static final int ROUNDS = 60;

  private final Random random = new Random(12);

  static Stream<LayoutKernel> kernels() {
    return LayoutKernels.available().stream();
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void codes(LayoutKernel kernel) {
    for (int round = 0; round < ROUNDS; round++) {
      for (CodeLayout layout : CodeLayout.values()) {
        Arrangement shape = shape(layout.tileColumns());
        byte[][] sources = random(shape, shape.memberCodes());
        byte[] expected = new byte[(int) layout.bytes(shape.matrixRows(), shape.paddedK())];
        layout.arrange(shape, views(sources), Bytes.of(expected));
        try (Memory memory = new Memory()) {
          long out = memory.of(expected.length);
          kernel.arrangeCodes(layout, shape, memory.of(sources), out);
          assertThat(memory.read(out, expected.length)).as("%s, %s", layout, shape).isEqualTo(expected);
          long[] members = memory.of(new byte[sources.length][(int) shape.memberCodes()]);
          kernel.restoreCodes(layout, shape, memory.of(expected), members);
          for (int i = 0; i < sources.length; i++) {
            assertThat(memory.read(members[i], sources[i].length)).as("%s, %s", layout, shape).isEqualTo(sources[i]);
          }
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void scales(LayoutKernel kernel) {
    for (int round = 0; round < ROUNDS; round++) {
      for (BlockScaleLayout layout : BlockScaleLayout.values()) {
        Arrangement shape = shape(layout == BlockScaleLayout.BLACKWELL_N128_K64 ? 64 : 16);
        float factor = layout == BlockScaleLayout.MARLIN_S0E5M3 ? 1 << random.nextInt(18) : 1;
        byte[][] sources = random(shape, shape.memberScales());
        byte[] expected = new byte[(int) layout.bytes(shape.matrixRows(), shape.paddedColumns())];
        byte[][] restored = new byte[sources.length][(int) shape.memberScales()];
        layout.arrange(shape, views(sources), factor, Bytes.of(expected));
        try (Memory memory = new Memory()) {
          long out = memory.of(expected.length);
          kernel.arrangeScales(layout, shape, memory.of(sources), factor, out);
          assertThat(memory.read(out, expected.length)).as("%s, %s", layout, shape).isEqualTo(expected);
          // Any bytes, those that no scale has among them.
          random.nextBytes(expected);
          layout.restore(shape, Bytes.of(expected), factor, views(restored));
          long[] members = memory.of(new byte[sources.length][(int) shape.memberScales()]);
          kernel.restoreScales(layout, shape, memory.of(expected), factor, members);
          for (int i = 0; i < sources.length; i++) {
            assertThat(memory.read(members[i], sources[i].length)).as("%s, %s", layout, shape).isEqualTo(restored[i]);
          }
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void firstScaleAboveALimit(LayoutKernel kernel) {
    byte[] scales = new byte[20_000];
    for (int place : new int[] {0, 1, 4095, 4096, 12_345, 19_999}) {
      scales[place] = (byte) 0x80;
      try (Memory memory = new Memory()) {
        long address = memory.of(scales);
        assertThat(kernel.firstAbove(address, scales.length, 0x7E)).isEqualTo(place);
        assertThat(kernel.firstAbove(address, place, 0x7E)).isEqualTo(-1);
        assertThat(kernel.firstAbove(address, scales.length, 0x80)).isEqualTo(-1);
      }

      scales[place] = 0x7E;
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void decodesWhatTheViewShows(LayoutKernel kernel) {
    for (int round = 0; round < ROUNDS; round++) {
      boolean isActivation = round % 2 == 0;
      int experts = isActivation ? 1 : random.nextInt(3);
      int rows = random.nextInt(200);
      int k = 64 * random.nextInt(5);
      float[] global = round % 3 == 0 ? null : new float[experts];
      for (int i = 0; global != null && i < experts; i++) {
        global[i] = random.nextFloat() * (random.nextInt(5) == 0 ? Float.MAX_VALUE : 1);
      }

      byte[] codes = new byte[experts * rows * k / 2];
      int atoms = (int) BlockScaleLayout.ATOM_128X4.bytes(rows, k / 16);
      byte[] scales = new byte[isActivation ? rows * k / 16 : experts * atoms];
      random.nextBytes(codes);
      random.nextBytes(scales);
      NVFP4Tensor view = isActivation
          ? NVFP4Tensor.activations(rows, k, Bytes.of(codes), Bytes.of(scales), global == null ? 1 : global[0])
          : NVFP4Tensor.weights(experts, rows, k, Bytes.of(codes), Bytes.of(scales), global);
      try (Memory memory = new Memory()) {
        TensorMemory tensor =
            new TensorMemory(isActivation, experts, rows, k, memory.of(codes), memory.of(scales), global);
        assertThat(tensor.scaleBytes()).isEqualTo(scales.length);
        long floats = memory.of((int) tensor.elements() * 4);
        long halves = memory.of((int) tensor.elements() * 2);
        kernel.decode(tensor, ElementType.F32, floats);
        kernel.decode(tensor, ElementType.BF16, halves);
        Bytes asFloats = new AddressBytes(floats, tensor.elements() * 4);
        Bytes asHalves = new AddressBytes(halves, tensor.elements() * 2);
        float[] row = new float[k];
        for (int r = 0; r < experts * rows; r++) {
          view.decodeRow(r / rows, r % rows, row);
          for (int i = 0; i < k; i++) {
            long at = (long) r * k + i;
            int bits = Float.floatToIntBits(row[i]);
            int half = (asHalves.get(2 * at) & 0xFF) | (asHalves.get(2 * at + 1) & 0xFF) << 8;
            assertThat(asFloats.intAt(4 * at)).isEqualTo(bits);
            assertThat(half).isEqualTo(
                BFloat16.fromFloat(Float.intBitsToFloat(bits)) & 0xFFFF);
          }
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void refusesBeforeAnything(LayoutKernel kernel) {
    long[] none = {0};
    assertThatThrownBy(() -> kernel.arrangeCodes(CodeLayout.MARLIN, Arrangement.plain(64, 16), new long[2], 0))
        .isInstanceOf(IllegalArgumentException.class).hasMessageStartingWith("Invalid members: 2");
    assertThatThrownBy(() -> kernel.arrangeCodes(CodeLayout.BLACKWELL_N128_K64, Arrangement.plain(64, 48), none, 0))
        .isInstanceOf(IllegalArgumentException.class).hasMessageContaining("[64, 48]");
    assertThatThrownBy(
        () -> kernel.restoreScales(BlockScaleLayout.BLACKWELL_N128_K64, Arrangement.plain(64, 48), 0, 1, none))
        .isInstanceOf(IllegalArgumentException.class).hasMessageContaining("a multiple of 4");
    assertThatThrownBy(
        () -> kernel.arrangeScales(BlockScaleLayout.ATOM_8X4, Arrangement.plain(64, 48), none, 2, 0))
        .isInstanceOf(IllegalArgumentException.class).hasMessageStartingWith("Invalid factor: 2.0");
    TensorMemory empty = new TensorMemory(false, 0, 0, 0, 0, 0, null);
    assertThatThrownBy(() -> kernel.decode(empty, ElementType.F16, 0))
        .isInstanceOf(IllegalArgumentException.class).hasMessageContaining("F16");
  }

  @Test
  void tensorsThatCannotBe() {
    assertThatThrownBy(() -> new TensorMemory(false, 1, 1, 32, 0, 0, null)).hasMessageContaining("multiple of 64");
    assertThatThrownBy(() -> new TensorMemory(true, 2, 1, 64, 0, 0, null)).hasMessageContaining("[2, 1, 64]");
    assertThatThrownBy(() -> new TensorMemory(false, 1, 1, 64, 0, 0, new float[2])).hasMessageContaining("2 for 1");
  }

  private Arrangement shape(int tileK) {
    RowOrder order = RowOrder.values()[random.nextInt(RowOrder.values().length)];
    int members = order == RowOrder.PLAIN ? 1 : 1 + random.nextInt(3);
    long rows = random.nextInt(150);
    long padded = upTo(rows + random.nextInt(2) * random.nextInt(70), order.multiple());
    long k = 16L * random.nextInt(20);
    long paddedK = upTo(k + random.nextInt(2) * 16L * random.nextInt(9), tileK);
    return new Arrangement(order, members, rows, padded, k, paddedK);
  }

  private static long upTo(long x, int multiple) {
    return (x + multiple - 1) / multiple * multiple;
  }

  private byte[][] random(Arrangement shape, long bytes) {
    byte[][] members = new byte[shape.members()][(int) bytes];
    for (byte[] member : members) {
      random.nextBytes(member);
    }

    return members;
  }

  private static Bytes[] views(byte[][] arrays) {
    return Stream.of(arrays).map(Bytes::of).toArray(Bytes[]::new);
  }

  /** Memory of a round, each piece at an alignment of its own and between guards. */
  private final class Memory implements AutoCloseable {
    private final List<NativeMemory> pieces = new ArrayList<>();

    long of(byte[] content) {
      return kept(NativeMemory.of(content, random.nextInt(16)));
    }

    long[] of(byte[][] contents) {
      return Stream.of(contents).mapToLong(this::of).toArray();
    }

    long of(int size) {
      return kept(NativeMemory.room(size, random.nextInt(16)));
    }

    private long kept(NativeMemory piece) {
      pieces.add(piece);
      return piece.address();
    }

    byte[] read(long address, int size) {
      byte[] content = new byte[size];
      Bytes bytes = new AddressBytes(address, size);
      for (int i = 0; i < size; i++) {
        content[i] = bytes.get(i);
      }

      return content;
    }

    @Override
    public void close() {
      pieces.forEach(NativeMemory::checkGuards);
    }
  }
}

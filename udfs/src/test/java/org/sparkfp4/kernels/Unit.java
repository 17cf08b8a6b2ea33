package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;

/** Segments of one type and width, and what the reference makes of them. */
final class Unit {
  private record Output(byte[] packed, byte[] scales, List<String> sums) {}

  private final ElementType type;
  private final int cols;
  private final List<byte[]> segments;

  Unit(ElementType type, int cols, byte[]... segments) {
    this.type = type;
    this.cols = cols;
    this.segments = List.of(segments);
  }

  /** One segment of blocks: a row each. */
  static Unit ofBits(ElementType type, int... bits) {
    return new Unit(type, Nvfp4.BLOCK, bytes(type, bits));
  }

  /** Elements given as their bits. */
  static byte[] bytes(ElementType type, int... bits) {
    ByteBuffer data = ByteBuffer.allocate(bits.length * type.bytes()).order(ByteOrder.LITTLE_ENDIAN);
    for (int element : bits) {
      if (type == ElementType.F32) {
        data.putInt(element);
      } else {
        data.putShort((short) element);
      }
    }

    return data.array();
  }

  float amax() {
    return (float) segments.stream().mapToDouble(segment -> Nvfp4.amax(type, ByteBuffer.wrap(segment))).max().orElse(0);
  }

  /** Holds every tier that is here to the reference: amax, then the bytes and the sums of both recipes. */
  void check() {
    check(amax());
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      NativeMemory[] sources = sources(1);
      float amax = kernel.amax(type, addresses(sources), counts(type.bytes()));
      assertThat(Float.floatToRawIntBits(amax)).as("amax, %s", kernel.tier())
          .isEqualTo(Float.floatToRawIntBits(amax()));
    }
  }

  /** The same for an amax that other tensors of the unit give, without the check of the segments' own. */
  void check(float amax) {
    check(SearchCase.RTN, amax);
  }

  /** The same for another choice of scales. */
  void check(SearchCase search, float amax) {
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      Output expected = reference(recipe, search, amax);
      for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
        check(kernel, recipe, search, amax, expected, 0, true);
        check(kernel, recipe, search, amax, expected, 1 + 2 * kernel.tier().length(), false);
      }
    }
  }

  /** The outputs of one recipe, by every tier, against bytes from elsewhere. */
  void check(Nvfp4Recipe recipe, byte[] packed, byte[] scales) {
    Output expected = new Output(packed, scales, reference(recipe, SearchCase.RTN, amax()).sums);
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      check(kernel, recipe, SearchCase.RTN, amax(), expected, 0, true);
    }
  }

  void check(Nvfp4Kernel kernel) {
    check(kernel, SearchCase.RTN);
  }

  void check(Nvfp4Kernel kernel, SearchCase search) {
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      check(kernel, recipe, search, amax(), reference(recipe, search, amax()), 0, true);
    }
  }

  private void check(Nvfp4Kernel kernel, Nvfp4Recipe recipe, SearchCase search, float amax, Output expected,
      int misalignment, boolean withSums) {
    NativeMemory[] sources = sources(misalignment);
    NativeMemory packed = NativeMemory.room(expected.packed.length, misalignment);
    NativeMemory scales = NativeMemory.room(expected.scales.length, misalignment);
    ErrorSums[] sums = Stream.generate(ErrorSums::new).limit(sources.length).toArray(ErrorSums[]::new);
    String what = kernel.tier() + ", " + recipe + ", " + search + ", " + type + ", amax " + amax;
    long[] rows = counts(cols * type.bytes());
    if (withSums && amax == amax()) {
      // the unit's own: found and used in one call
      assertThat(kernel.encodeUnit(recipe, search.search(), type, addresses(sources), rows, cols, packed.address(),
          scales.address(), sums)).as(what).isEqualTo(amax);
    } else {
      kernel.encode(recipe, search.search(), type, addresses(sources), rows, cols, amax, packed.address(),
          scales.address(), withSums ? sums : null);
    }

    packed.checkGuards();
    scales.checkGuards();
    if (!Arrays.equals(scales.bytes(), expected.scales) || !Arrays.equals(packed.bytes(), expected.packed)) {
      failAtFirstBlock(what, packed.bytes(), scales.bytes(), expected);
    }

    if (withSums) {
      assertThat(text(sums)).as(what).isEqualTo(expected.sums);
    }
  }

  private void failAtFirstBlock(String what, byte[] packed, byte[] scales, Output expected) {
    int block = 0;
    while (text(packed, scales, block).equals(text(expected.packed, expected.scales, block))) {
      block++;
    }

    assertThat(text(packed, scales, block)).as("%s, block %d: %s", what, block, source(block))
        .isEqualTo(text(expected.packed, expected.scales, block));
  }

  private static String text(byte[] packed, byte[] scales, int block) {
    return HexFormat.of().formatHex(packed, 8 * block, 8 * block + 8) + " scale "
        + HexFormat.of().toHexDigits(scales[block]);
  }

  private String source(int block) {
    int bytes = Nvfp4.BLOCK * type.bytes();
    int first = 0;
    for (byte[] segment : segments) {
      int blocks = segment.length / bytes;
      if (block < first + blocks) {
        return HexFormat.of().formatHex(segment, (block - first) * bytes, (block - first + 1) * bytes);
      }

      first += blocks;
    }

    throw new IllegalStateException("Cannot find block " + block);
  }

  private Output reference(Nvfp4Recipe recipe, SearchCase search, float amax) {
    float globalScale = search.kind().globalScale(recipe, amax, type);
    int elements = segments.stream().mapToInt(segment -> segment.length / type.bytes()).sum();
    ByteBuffer packed = ByteBuffer.allocate(elements / 2);
    ByteBuffer scales = ByteBuffer.allocate(elements / Nvfp4.BLOCK);
    ErrorSums[] sums = Stream.generate(ErrorSums::new).limit(segments.size()).toArray(ErrorSums[]::new);
    for (int i = 0; i < segments.size(); i++) {
      ByteBuffer data = ByteBuffer.wrap(segments.get(i));
      int rows = data.capacity() / type.bytes() / cols;
      if (Nvfp4.isZero(amax)) {
        Nvfp4.encodeZero(recipe, rows, cols, packed, scales);
      } else {
        Nvfp4.encode(recipe, search.choice(), type, data, rows, cols, globalScale, packed, scales, sums[i]);
      }

      packed.position(packed.position() + rows * cols / 2);
      scales.position(scales.position() + rows * cols / Nvfp4.BLOCK);
    }

    return new Output(packed.array(), scales.array(), text(sums));
  }

  /** Bits, all NaN alike. */
  private static List<String> text(ErrorSums[] sums) {
    return Arrays.stream(sums).flatMap(sum -> Stream.of(sum.squares(), sum.squaredErrors()))
        .map(Double::toHexString).toList();
  }

  private NativeMemory[] sources(int misalignment) {
    return segments.stream().map(segment -> NativeMemory.of(segment, misalignment)).toArray(NativeMemory[]::new);
  }

  private long[] counts(int bytesEach) {
    return segments.stream().mapToLong(segment -> segment.length / bytesEach).toArray();
  }

  private static long[] addresses(NativeMemory[] sources) {
    return Arrays.stream(sources).mapToLong(NativeMemory::address).toArray();
  }
}

package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.sparkfp4.formats.Dequantizer;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.WeightScheme;

/** Segments of one quantized source, and what the reference makes of them: every tier must do the same. */
final class QuantizedUnit {
  /** Rows of one tensor. */
  record Segment(byte[] codes, byte[] scales, int rows) {}

  /** What a call wrote, or the error that it ended with. */
  private record Output(byte[] packed, byte[] scales, List<String> sums, long requantized, String error) {}

  private final WeightScheme scheme;
  private final int cols;
  private final List<Segment> segments;
  private final Map<Integer, NativeMemory[]> memory = new HashMap<>();

  /** The unit's amax once it has been asked for, NaN where it has none. */
  private Float own;

  QuantizedUnit(WeightScheme scheme, int cols, Segment... segments) {
    this.scheme = scheme;
    this.cols = cols;
    this.segments = List.of(segments);
  }

  /** Amax, then the bytes and the sums of both recipes, and the tensors as bfloat16. */
  void check() {
    Float amax = checkAmax();
    checkBf16();
    if (amax != null) {
      check(amax);
    }
  }

  /** For an amax that other tensors of the unit give. */
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

  /** One tier, for both recipes. */
  void check(Nvfp4Kernel kernel) {
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      check(kernel, recipe, SearchCase.RTN, referenceAmax(), reference(recipe, SearchCase.RTN, referenceAmax()), 0,
          true);
    }
  }

  /** The cast by one tier, for both recipes. */
  void checkCast(Nvfp4Kernel kernel) {
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      checkCast(kernel, recipe, largestExponent(), referenceCast(recipe, largestExponent()), 0, true);
    }
  }

  /** Bytes from elsewhere, which an encoding by amax must give. */
  void check(Nvfp4Recipe recipe, byte[] packed, byte[] scales) {
    Output expected = new Output(packed, scales, reference(recipe, SearchCase.RTN, referenceAmax()).sums, 0, null);
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      check(kernel, recipe, SearchCase.RTN, referenceAmax(), expected, 0, true);
    }
  }

  /** Bytes from elsewhere, which the cast must give. */
  void checkCast(Nvfp4Recipe recipe, byte[] packed, byte[] scales) {
    int kmax = largestExponent();
    Output expected = new Output(packed, scales, referenceCast(recipe, kmax).sums, 0, null);
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      checkCast(kernel, recipe, kmax, expected, 0, true);
    }
  }

  /** The cast of an MXFP4 unit by its own largest exponent. */
  void checkCast() {
    int kmax = largestExponent();
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      long[] addresses = addresses(1, true);
      assertThat(kernel.largestExponent(addresses, counts())).as(kernel.tier()).isEqualTo(kmax);
    }

    checkCast(kmax);
  }

  void checkCast(int kmax) {
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      Output expected = referenceCast(recipe, kmax);
      for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
        checkCast(kernel, recipe, kmax, expected, 0, true);
        checkCast(kernel, recipe, kmax, expected, 1 + 2 * kernel.tier().length(), false);
      }
    }
  }

  /** Of all segments by the reference; the cast of each is by this one. */
  int largestExponent() {
    return segments.stream().mapToInt(segment -> Mxfp4.largestExponent(ByteBuffer.wrap(segment.scales))).max()
        .orElse(Mxfp4.NO_EXPONENT);
  }

  float referenceAmax() {
    float amax = 0;
    for (int i = 0; i < segments.size(); i++) {
      Segment segment = segments.get(i);
      try {
        amax = Math.max(amax, Nvfp4.amax(scheme, ByteBuffer.wrap(segment.codes), ByteBuffer.wrap(segment.scales),
            segment.rows, cols));
      } catch (NonFiniteException e) {
        throw new NonFiniteException(i, e.index(), e.value());
      }
    }

    return amax;
  }

  private Float checkAmax() {
    Float expected = null;
    String error = null;
    try {
      expected = referenceAmax();
    } catch (NonFiniteException e) {
      error = e.getMessage();
    }

    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      long[] codes = addresses(1, false);
      long[] scales = addresses(3, true);
      if (error != null) {
        assertThatThrownBy(() -> kernel.amax(scheme, codes, scales, rows(), cols)).as(kernel.tier())
            .isInstanceOf(NonFiniteException.class).hasMessage(error);
      } else {
        assertThat(kernel.amax(scheme, codes, scales, rows(), cols)).as("amax, %s, %s", kernel.tier(), scheme.text())
            .isEqualTo(expected);
      }
    }

    return expected;
  }

  void checkBf16() {
    for (Segment segment : segments) {
      byte[] expected = new byte[2 * segment.rows * cols];
      String error = null;
      try {
        Dequantizer.toBf16(scheme, ByteBuffer.wrap(segment.codes), ByteBuffer.wrap(segment.scales), segment.rows, cols,
            ByteBuffer.wrap(expected));
      } catch (NonFiniteException e) {
        error = e.getMessage();
      }

      for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
        NativeMemory codes = NativeMemory.of(segment.codes, 1);
        NativeMemory scales = NativeMemory.of(segment.scales, 3);
        NativeMemory out = NativeMemory.room(expected.length, 1);
        String failure = failure(() -> kernel.dequantizeToBf16(scheme, codes.address(), scales.address(), segment.rows,
            cols, out.address()));
        out.checkGuards();
        assertThat(failure).as("to bf16, %s, %s", kernel.tier(), scheme.text()).isEqualTo(error);
        if (error == null) {
          assertThat(out.bytes()).as("to bf16, %s, %s", kernel.tier(), scheme.text()).isEqualTo(expected);
        }
      }
    }
  }

  private void check(Nvfp4Kernel kernel, Nvfp4Recipe recipe, SearchCase search, float amax, Output expected,
      int misalignment, boolean withSums) {
    Output output = run(misalignment, withSums, (packed, scales, sums) -> {
      if (withSums && isOwn(amax)) {
        assertThat(kernel.encodeUnit(recipe, search.search(), scheme, addresses(misalignment, false),
            addresses(misalignment, true), rows(), cols, packed, scales, sums)).as(kernel.tier()).isEqualTo(amax);
      } else {
        kernel.encode(recipe, search.search(), scheme, addresses(misalignment, false), addresses(misalignment, true),
            rows(), cols, amax, packed, scales, sums);
      }

      return 0;
    });
    compare(kernel.tier() + ", " + recipe + ", " + search + ", " + scheme.text() + ", amax " + amax, output, expected,
        withSums);
  }

  /** Whether the unit's amax is this one: then it can be found and used in one call. */
  private boolean isOwn(float amax) {
    if (own == null) {
      try {
        own = referenceAmax();
      } catch (NonFiniteException e) {
        own = Float.NaN;
      }
    }

    return amax == own;
  }

  private void checkCast(Nvfp4Kernel kernel, Nvfp4Recipe recipe, int kmax, Output expected, int misalignment,
      boolean withSums) {
    Output output = run(misalignment, withSums, (packed, scales, sums) -> kernel.castMxfp4(recipe,
        addresses(misalignment, false), addresses(misalignment, true), rows(), cols, kmax, packed, scales, sums));
    compare(kernel.tier() + ", " + recipe + ", cast, kmax " + kmax, output, expected, withSums);
  }

  private static void compare(String what, Output output, Output expected, boolean withSums) {
    assertThat(output.error).as(what).isEqualTo(expected.error);
    if (expected.error != null) {
      return;
    }

    for (int block = 0; block < expected.scales.length; block++) {
      if (!text(output, block).equals(text(expected, block))) {
        assertThat(text(output, block)).as("%s, block %d", what, block).isEqualTo(text(expected, block));
      }
    }

    assertThat(output.requantized).as(what).isEqualTo(expected.requantized);
    if (withSums) {
      assertThat(output.sums).as(what).isEqualTo(expected.sums);
    }
  }

  private static String text(Output output, int block) {
    return HexFormat.of().formatHex(output.packed, 8 * block, 8 * block + 8) + " scale "
        + HexFormat.of().toHexDigits(output.scales[block]);
  }

  private interface Call {
    long run(long packed, long scales, ErrorSums[] sums);
  }

  private Output run(int misalignment, boolean withSums, Call call) {
    NativeMemory packed = NativeMemory.room(elements() / 2, misalignment);
    NativeMemory scales = NativeMemory.room(elements() / Nvfp4.BLOCK, misalignment);
    ErrorSums[] sums = sums();
    long[] requantized = new long[1];
    String error = failure(() -> requantized[0] = call.run(packed.address(), scales.address(), withSums ? sums : null));
    packed.checkGuards();
    scales.checkGuards();
    return new Output(packed.bytes(), scales.bytes(), text(sums), requantized[0], error);
  }

  private interface ReferenceCall {
    long run(Segment segment, ByteBuffer packed, ByteBuffer scales, ErrorSums sums);
  }

  private Output reference(Nvfp4Recipe recipe, SearchCase search, float amax) {
    return reference((segment, packed, scales, sums) -> {
      if (Nvfp4.isZero(amax)) {
        Nvfp4.encodeZero(recipe, segment.rows, cols, packed, scales);
      } else {
        Nvfp4.encode(recipe, search.choice(), scheme, ByteBuffer.wrap(segment.codes), ByteBuffer.wrap(segment.scales),
            segment.rows, cols, search.kind().globalScale(recipe, amax, ElementType.F32), packed, scales, sums);
      }

      return 0;
    });
  }

  private Output referenceCast(Nvfp4Recipe recipe, int kmax) {
    return reference((segment, packed, scales, sums) -> Mxfp4.cast(recipe, ByteBuffer.wrap(segment.codes),
        ByteBuffer.wrap(segment.scales), segment.rows, cols, kmax, packed, scales, sums));
  }

  private Output reference(ReferenceCall call) {
    ByteBuffer packed = ByteBuffer.allocate(elements() / 2);
    ByteBuffer scales = ByteBuffer.allocate(elements() / Nvfp4.BLOCK);
    ErrorSums[] sums = sums();
    long requantized = 0;
    String error = null;
    for (int i = 0; i < segments.size() && error == null; i++) {
      Segment segment = segments.get(i);
      try {
        requantized += call.run(segment, packed, scales, sums[i]);
      } catch (NonFiniteException e) {
        error = new NonFiniteException(i, e.index(), e.value()).getMessage();
      } catch (IllegalArgumentException e) {
        error = e.getMessage();
      }

      packed.position(packed.position() + segment.rows * cols / 2);
      scales.position(scales.position() + segment.rows * cols / Nvfp4.BLOCK);
    }

    return new Output(packed.array(), scales.array(), text(sums), requantized, error);
  }

  private static String failure(Runnable call) {
    try {
      call.run();
      return null;
    } catch (NonFiniteException | IllegalArgumentException e) {
      return e.getMessage();
    }
  }

  private int elements() {
    return segments.stream().mapToInt(segment -> segment.rows * cols).sum();
  }

  private ErrorSums[] sums() {
    return Stream.generate(ErrorSums::new).limit(segments.size()).toArray(ErrorSums[]::new);
  }

  private static List<String> text(ErrorSums[] sums) {
    return Arrays.stream(sums).flatMap(sum -> Stream.of(sum.squares(), sum.squaredErrors()))
        .map(Double::toHexString).toList();
  }

  private long[] rows() {
    return segments.stream().mapToLong(Segment::rows).toArray();
  }

  private long[] counts() {
    return segments.stream().mapToLong(segment -> segment.scales.length).toArray();
  }

  /** Copies are kept as long as the unit, for a kernel is given their addresses alone. */
  private long[] addresses(int misalignment, boolean ofScales) {
    NativeMemory[] copies = memory.computeIfAbsent(misalignment + (ofScales ? 1000 : 0), key -> segments.stream()
        .map(segment -> NativeMemory.of(ofScales ? segment.scales : segment.codes, misalignment))
        .toArray(NativeMemory[]::new));
    return Arrays.stream(copies).mapToLong(NativeMemory::address).toArray();
  }
}

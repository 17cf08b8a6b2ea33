package org.sparkfp4.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SafetensorsHeaderTest {
  private static final Path GOLDEN = Path.of("src/test/resources/golden/qwen3_moe_bf16");

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void encodesWhatTheReferenceWriterWrote(int shard) throws IOException {
    byte[] file = Files.readAllBytes(GOLDEN.resolve("model-0000" + shard + "-of-00003.safetensors"));
    SafetensorsHeader header = parse(file);

    assertThat(header.tensors()).hasSizeGreaterThan(5);
    assertThat(header.metadata()).isEqualTo(SafetensorsHeader.FORMAT_PT);
    assertThat(header.dataStart() + header.dataBytes()).isEqualTo(file.length);
    assertThat(SafetensorsHeader.encode(header.tensors(), header.metadata()))
        .isEqualTo(Arrays.copyOf(file, (int) header.dataStart()));
  }

  @Test
  void scalarsAndEmptyTensorsAreFine() throws IOException {
    List<TensorInfo> tensors = List.of(
        new TensorInfo("empty", DType.F32, List.of(0L, 5L), 0, 0),
        new TensorInfo("scalar", DType.F32, List.of(), 0, 4),
        new TensorInfo("nibbles", DType.F4, List.of(3L, 2L), 4, 7),
        new TensorInfo("late", DType.BF16, List.of(5L, 0L), 7, 7));
    byte[] encoded = SafetensorsHeader.encode(tensors, SafetensorsHeader.FORMAT_PT);

    assertThat(encoded.length % 8).isZero();
    assertThat(new String(encoded, 8, encoded.length - 8, StandardCharsets.UTF_8))
        .startsWith("{\"__metadata__\":{\"format\":\"pt\"},\"empty\":{\"dtype\":\"F32\",\"shape\":[0,5],");
    SafetensorsHeader header = parse(Arrays.copyOf(encoded, encoded.length + 7));
    assertThat(header.tensors()).isEqualTo(tensors);
    assertThat(header.dataStart()).isEqualTo(encoded.length);
    assertThat(header.dataBytes()).isEqualTo(7);
  }

  @Test
  void orderIsThatOfTheBytesNotOfTheNames() throws IOException {
    String json = "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},"
        + "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"note\":{\"x\":[1]}}}  ";
    byte[] file = ByteBuffer.allocate(8 + json.length() + 3)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(json.length())
        .put(json.getBytes(StandardCharsets.UTF_8))
        .array();
    assertThat(parse(file).tensors()).extracting(TensorInfo::name).containsExactly("a", "b");
  }

  @Test
  void encoderRefusesWhatTheParserWould() {
    TensorInfo first = new TensorInfo("a", DType.U8, List.of(4L), 0, 4);
    assertCannotEncode("tensor name a is taken", first, new TensorInfo("a", DType.U8, List.of(4L), 4, 8));
    assertCannotEncode("tensor name __metadata__ is taken", new TensorInfo("__metadata__", DType.U8, List.of(), 0, 1));
    assertCannotEncode("tensor b begins at 5, but the one before it ends at 4",
        first, new TensorInfo("b", DType.U8, List.of(4L), 5, 9));
    assertCannotEncode("tensor b of BF16 [4] has a length of 4", first,
        new TensorInfo("b", DType.BF16, List.of(4L), 4, 8));
  }

  @Test
  void damagedHeadersGiveAHeaderOrTheOneException() throws IOException {
    byte[] file = Files.readAllBytes(GOLDEN.resolve("model-00001-of-00003.safetensors"));
    int headerEnd = (int) parse(file).dataStart();
    Random random = new Random(20260101);
    List<String> other = new ArrayList<>();
    int accepted = 0;
    int refused = 0;
    for (int round = 0; round < 4000; round++) {
      byte[] damaged = mutate(file, headerEnd, random);
      try {
        SafetensorsHeader header = parse(damaged);
        assertThat(header.tensors().stream().mapToLong(TensorInfo::length).sum()).isEqualTo(header.dataBytes());
        accepted++;
      } catch (InvalidSafetensorsException e) {
        refused++;
      } catch (IOException | RuntimeException e) {
        other.add(round + ": " + e);
      }
    }

    assertThat(other).isEmpty();
    assertThat(accepted).as("changed names still parse").isPositive();
    assertThat(refused).isGreaterThan(accepted);
  }

  private static byte[] mutate(byte[] file, int headerEnd, Random random) {
    byte[] damaged = switch (random.nextInt(4)) {
      case 0 -> Arrays.copyOf(file, random.nextInt(file.length + 100));
      default -> file.clone();
    };
    int end = Math.min(headerEnd, damaged.length);
    for (int edits = random.nextInt(4); edits >= 0 && end > 0; edits--) {
      int at = random.nextInt(end);
      switch (random.nextInt(3)) {
        case 0 -> damaged[at] ^= (byte) (1 << random.nextInt(8));
        case 1 -> damaged[at] = (byte) "{}[]\",:0123456789-.eE\\ tn".charAt(random.nextInt(25));
        default -> {
          int length = Math.min(random.nextInt(40), end - at);
          System.arraycopy(damaged, random.nextInt(end - length + 1), damaged, at, length);
        }
      }
    }

    return damaged;
  }

  private static void assertCannotEncode(String message, TensorInfo... tensors) {
    assertThatThrownBy(() -> SafetensorsHeader.encode(List.of(tensors), Map.of()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("Cannot encode a header")
        .hasMessageContaining(message);
  }

  private static SafetensorsHeader parse(byte[] file) throws IOException {
    return SafetensorsHeader.parse("f", new ByteArrayInputStream(file), file.length);
  }
}

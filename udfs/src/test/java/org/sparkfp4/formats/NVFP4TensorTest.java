package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NVFP4TensorTest {
  private final Random random = new Random(7);

  /** Weights decode as the row-major tensors that they were arranged from. */
  @ParameterizedTest
  @CsvSource({"1, 128, 64", "3, 256, 192", "2, 200, 128", "2, 40, 320"})
  void weightsDecodeAsTheirSource(int experts, int rows, int k) {
    byte[] codes = new byte[experts * rows * k / 2];
    random.nextBytes(codes);
    byte[] scales = scales(experts * rows * k / 16);
    float[] global = new float[experts];
    int atomBytes = (int) BlockScaleLayout.ATOM_128X4.bytes(rows, k / 16);
    byte[] atoms = new byte[experts * atomBytes];
    for (int expert = 0; expert < experts; expert++) {
      global[expert] = 0.01f + random.nextFloat();
      BlockScaleLayout.ATOM_128X4.arrange(Arrangement.plain(rows, k),
          new Bytes[] {Bytes.of(slice(scales, expert * rows * k / 16, rows * k / 16))}, 1,
          Bytes.of(slice(atoms, expert * atomBytes, atomBytes)));
    }

    NVFP4Tensor tensor = NVFP4Tensor.weights(experts, rows, k, Bytes.of(codes), Bytes.of(atoms), global);
    float[] expected = new float[rows * k];
    float[] row = new float[k];
    for (int expert = 0; expert < experts; expert++) {
      Nvfp4.decode(Nvfp4Recipe.MODELOPT, slice(codes, expert * rows * k / 2, rows * k / 2),
          slice(scales, expert * rows * k / 16, rows * k / 16), rows, k, global[expert], FloatBuffer.wrap(expected));
      for (int m = 0; m < rows; m++) {
        tensor.decodeRow(expert, m, row);
        assertThat(row).isEqualTo(Arrays.copyOfRange(expected, m * k, (m + 1) * k));
      }

      assertThat(tensor.decode(expert, rows - 1, k - 1)).isEqualTo(expected[rows * k - 1]);
    }
  }

  @Test
  void weightsInThePagesWords() {
    byte[] codes = new byte[2 * 256 * 64];
    byte[] atoms = new byte[2 * 256 * 8];
    for (int i = 0; i < codes.length; i++) {
      codes[i] = (byte) (i * 31 + i / 256);
    }

    for (int i = 0; i < atoms.length; i++) {
      atoms[i] = (byte) (i % 127);
    }

    NVFP4Tensor tensor = NVFP4Tensor.weights(2, 256, 128, Bytes.of(codes), Bytes.of(atoms), null);
    assertThat(new long[] {tensor.stride(0), tensor.stride(1), tensor.stride(2)}).containsExactly(256 * 4, 4, 2);
    assertThat(tensor.scaleNumKTiles()).isEqualTo(2);
    assertThat(tensor.scaleExpertStride()).isEqualTo(2 * 2 * 128);
    assertThat(tensor.scaleMDimIdx()).isEqualTo(1);
    assertThat(tensor.scaleKDimIdx()).isEqualTo(2);
    assertThat(tensor.extent()).isEqualTo(new Dim3(2, 256, 2));
    assertThat(tensor.scaleAt(1)).isEqualTo(1);
    Dim3 tile = new Dim3(1, 165, 1);
    assertThat(tensor.tileOffsetInt4(tile)).isEqualTo(1024 + 165 * 4 + 2);
    // Expert 1, second atom of rows: row 37 is 5 of the second 32; second atom of columns.
    int word = 512 + 256 + 128 + 5 * 4 + 1;
    assertThat(tensor.tileScaleIndex(tile)).isEqualTo(word);
    byte[] s = Arrays.copyOfRange(atoms, 4 * word, 4 * word + 4);
    assertThat(tensor.readBlockScaleWord(tile)).isEqualTo(s[0] | s[2] << 8 | s[1] << 16 | s[3] << 24);
    int at = (1024 + 165 * 4 + 2) * 16;
    int[] chunk = tensor.loadTileUint4(tile, 1);
    assertThat(chunk[3]).isEqualTo(ByteBuffer.wrap(codes).order(ByteOrder.LITTLE_ENDIAN).getInt(at + 28));
    assertThat(chunk[0]).isEqualTo(tensor.loadTileUint32Lane(tile, 1, 0));
  }

  @Test
  void activationsHaveTheirWordsExchangedAlready() {
    int tokens = 5;
    int k = 192;
    byte[] codes = new byte[tokens * k / 2];
    random.nextBytes(codes);
    byte[] scales = scales(tokens * k / 16);
    byte[] words = scales.clone();
    for (int i = 0; i < words.length; i += 4) {
      words[i + 1] = scales[i + 2];
      words[i + 2] = scales[i + 1];
    }

    NVFP4Tensor tensor = NVFP4Tensor.activations(tokens, k, Bytes.of(codes), Bytes.of(words), 0.3f);
    float[] expected = new float[tokens * k];
    Nvfp4.decode(Nvfp4Recipe.MODELOPT, ByteBuffer.wrap(codes), ByteBuffer.wrap(scales), tokens, k, 0.3f,
        FloatBuffer.wrap(expected));
    float[] row = new float[k];
    for (int token = 0; token < tokens; token++) {
      tensor.decodeRow(0, token, row);
      assertThat(row).isEqualTo(Arrays.copyOfRange(expected, token * k, (token + 1) * k));
    }

    Dim3 tile = new Dim3(2, 1, 0);
    assertThat(tensor.readBlockScaleWordLinear(tile)).isEqualTo(Bytes.of(words).intAt(4 * (2 * 3 + 1)));
    assertThat(tensor.scaleMDimIdx()).isZero();
    assertThat(tensor.scaleKDimIdx()).isEqualTo(1);
  }

  @Test
  void looksIntoAFile(@TempDir Path folder) throws IOException {
    byte[] content = new byte[100 + 128 * 32 + 512];
    random.nextBytes(content);
    Path file = Files.write(folder.resolve("weights.bin"), content);
    Bytes codes = Bytes.map(file, 100, 128 * 32);
    Bytes scales = Bytes.map(file, 100 + 128 * 32, 512);
    NVFP4Tensor tensor = NVFP4Tensor.weights(1, 128, 64, codes, scales, null);
    assertThat(tensor.loadTileUint32Lane(new Dim3(0, 1, 0), 0, 0)).isEqualTo(Bytes.of(content).intAt(132));
    assertThatThrownBy(() -> Bytes.map(file, 101, content.length - 100))
        .isInstanceOf(IllegalArgumentException.class).hasMessageContaining(file.toString());
  }

  @Test
  void sizesThatDoNotAgree() {
    Bytes none = Bytes.of(new byte[0]);
    assertThatThrownBy(() -> NVFP4Tensor.weights(1, 1, 96, none, none, null)).hasMessageContaining("multiple of 64");
    Bytes codes = Bytes.of(new byte[32]);
    assertThatThrownBy(() -> NVFP4Tensor.weights(1, 1, 64, none, none, null))
        .hasMessage("Invalid quantized data: 0 bytes, must be 32");
    assertThatThrownBy(() -> NVFP4Tensor.weights(1, 1, 64, codes, codes, null))
        .hasMessage("Invalid block scales: 32 bytes, must be 512");
    Bytes atom = Bytes.of(new byte[512]);
    assertThatThrownBy(() -> NVFP4Tensor.weights(1, 1, 64, codes, atom, new float[2]))
        .hasMessageContaining("2 for 1 experts");
    NVFP4Tensor tensor = NVFP4Tensor.weights(1, 1, 64, codes, atom, null);
    assertThatThrownBy(() -> tensor.decode(0, 1, 0)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  private byte[] scales(int count) {
    byte[] scales = new byte[count];
    for (int i = 0; i < count; i++) {
      scales[i] = (byte) random.nextInt(0x7F);
    }

    return scales;
  }

  private static ByteBuffer slice(byte[] bytes, int at, int size) {
    return ByteBuffer.wrap(bytes, at, size).slice();
  }
}

package org.sparkfp4.output;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

class Crc32cJoinTest {
  @Test
  void isTheSumOfTheWhole() {
    Random random = new Random(5);
    byte[] bytes = new byte[70_000];
    random.nextBytes(bytes);
    for (int i = 0; i < 3000; i++) {
      int end = random.nextInt(bytes.length + 1);
      int middle = i % 5 == 0 ? end : random.nextInt(end + 1);

      assertThat(Crc32cJoin.join(crc(bytes, 0, middle), crc(bytes, middle, end), end - middle))
          .as("%d and %d bytes", middle, end - middle)
          .isEqualTo(crc(bytes, 0, end));
    }
  }

  /** A part of more than 4 GiB: zeros, in pieces of which the same are joined twice as long each time. */
  @Test
  void lengthsAreOf64Bits() {
    byte[] piece = new byte[1 << 20];
    long length = piece.length;
    int joined = crc(piece, 0, piece.length);
    for (; length < 1L << 33; length *= 2) {
      joined = Crc32cJoin.join(joined, joined, length);
    }

    CRC32C whole = new CRC32C();
    for (long done = 0; done < length; done += piece.length) {
      whole.update(piece);
    }

    assertThat(joined).isEqualTo((int) whole.getValue());
  }

  private static int crc(byte[] bytes, int from, int to) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, from, to - from);
    return (int) crc.getValue();
  }
}

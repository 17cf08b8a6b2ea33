package org.sparkfp4.output;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

class SourcePiecesTest {
  @Test
  void piecesInAnyOrderGiveTheChecksumOfTheWhole() {
    Random random = new Random(3);
    byte[] file = new byte[100_003];
    random.nextBytes(file);
    for (int trial = 0; trial < 20; trial++) {
      List<SourcePiece> pieces = new ArrayList<>();
      for (int begin = 0; begin < file.length; ) {
        int end = Math.min(file.length, begin + 1 + random.nextInt(9000));
        pieces.add(piece("f", file, begin, end));
        begin = end;
      }

      Collections.shuffle(pieces, random);
      assertThat(SourcePieces.joined(pieces)).containsExactly(piece("f", file, 0, file.length));
    }
  }

  @Test
  void whatDoesNotFollowStaysApart() {
    byte[] file = new byte[30];
    List<SourcePiece> apart = List.of(piece("a", file, 0, 10), piece("a", file, 11, 20), piece("b", file, 20, 30));

    assertThat(SourcePieces.joined(apart)).isEqualTo(apart);
    SourcePieces read = new SourcePieces();
    read.add("a", 0, file, 10);
    read.add("a", 10, file, 10);
    assertThat(read.joined()).containsExactly(piece("a", file, 0, 20));
  }

  private static SourcePiece piece(String name, byte[] file, int begin, int end) {
    CRC32C crc = new CRC32C();
    crc.update(Arrays.copyOfRange(file, begin, end));
    return new SourcePiece(name, begin, end - begin, (int) crc.getValue());
  }
}

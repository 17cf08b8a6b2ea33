package org.sparkfp4.output;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.zip.CRC32C;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.Slab;
import org.sparkfp4.plan.Unit;

/** The pieces of source files that a shard was made from, each with the checksum of what was read. */
public final class SourcePieces {
  private static final Comparator<SourcePiece> BY_PLACE =
      Comparator.comparing(SourcePiece::file).thenComparingLong(SourcePiece::offset);

  private final List<SourcePiece> pieces = new ArrayList<>();

  /** Adds bytes that were read at {@code offset}. */
  void add(String file, long offset, byte[] bytes, int length) {
    CRC32C crc = new CRC32C();
    crc.update(ByteBuffer.wrap(bytes, 0, length));
    add(new SourcePiece(file, offset, length, (int) crc.getValue()));
  }

  /**
   * Adds what a slab was read from.
   *
   * @param checksums CRC-32C of the payloads data0 to data2 and scale0 to scale2, or null where the source gave none
   */
  public void add(Unit unit, Slab slab, int[] checksums) {
    if (checksums == null) {
      return;
    }

    if (slab.isWhole()) {
      for (int m = 0; m < unit.members().size(); m++) {
        Member member = unit.members().get(m);
        add(member.weight(), 0, member.weight().length(), checksums[m]);
        if (member.scale() != null) {
          add(member.scale(), 0, member.scale().length(), checksums[Unit.MAX_MEMBERS + m]);
        }
      }
    } else {
      Member member = unit.members().get(slab.member());
      LocatedTensor weight = member.weight();
      add(weight, weight.length() / weight.rows() * slab.rowOffset(), unit.dataBytes(slab.rows()), checksums[0]);
      if (member.scale() != null) {
        add(member.scale(), unit.scaleOffset(slab.rowOffset()), unit.scaleBytes(slab.rows()),
            checksums[Unit.MAX_MEMBERS]);
      }
    }
  }

  /** Elements that are apart in the file were put together before they were summed: that sum is none of the file. */
  private void add(LocatedTensor tensor, long from, long length, int crc32c) {
    if (tensor.strides().isEmpty() && length > 0) {
      add(new SourcePiece(tensor.file(), tensor.offset() + from, length, crc32c));
    }
  }

  private void add(SourcePiece piece) {
    int last = pieces.size() - 1;
    if (last >= 0 && follows(pieces.get(last), piece)) {
      pieces.set(last, join(pieces.get(last), piece));
    } else {
      pieces.add(piece);
    }
  }

  /** The pieces by file and place, those that follow one another as one. */
  public List<SourcePiece> joined() {
    return joined(pieces);
  }

  /** Pieces by file and place, those that follow one another as one. */
  static List<SourcePiece> joined(List<SourcePiece> pieces) {
    SourcePieces joined = new SourcePieces();
    pieces.stream().sorted(BY_PLACE).forEach(joined::add);
    return List.copyOf(joined.pieces);
  }

  private static boolean follows(SourcePiece piece, SourcePiece next) {
    return piece.file().equals(next.file()) && piece.end() == next.offset();
  }

  private static SourcePiece join(SourcePiece piece, SourcePiece next) {
    int crc = Crc32cJoin.join(piece.crc32c(), next.crc32c(), next.length());
    return new SourcePiece(piece.file(), piece.offset(), piece.length() + next.length(), crc);
  }
}

package org.sparkfp4.sink;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.output.ShardOutput;
import org.sparkfp4.output.SourceFiles;

/** Carries tensors over from the source byte for byte. */
final class SourceCopier {
  private final SourceFiles files;
  private final byte[] piece = new byte[1 << 20];

  SourceCopier(SourceFiles files) {
    this.files = files;
  }

  void copy(LocatedTensor tensor, ShardOutput out) throws IOException {
    for (long done = 0; done < tensor.length(); ) {
      int n = (int) Math.min(piece.length, tensor.length() - done);
      files.read(tensor, done, piece, n);
      out.write(ByteBuffer.wrap(piece, 0, n));
      done += n;
    }
  }
}

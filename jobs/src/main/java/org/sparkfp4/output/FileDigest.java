package org.sparkfp4.output;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.sparkfp4.files.Sha256;

/**
 * A file of a checkpoint beside its shards.
 *
 * @param name its name in the folder
 * @param length its bytes
 * @param sha256 SHA-256 of its bytes, lower-case hexadecimal
 */
public record FileDigest(String name, long length, String sha256) implements Serializable {
  public FileDigest {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(sha256, "sha256");
  }

  /** The digest of a file with this content. */
  public static FileDigest of(String name, byte[] content) {
    return new FileDigest(name, content.length, Sha256.hex(content));
  }

  /** Copies a file's content and gives its digest. */
  public static FileDigest copy(String name, InputStream in, OutputStream out) throws IOException {
    Sha256 digest = new Sha256();
    byte[] piece = new byte[1 << 20];
    long length = 0;
    for (int n = in.read(piece); n >= 0; n = in.read(piece)) {
      digest.update(ByteBuffer.wrap(piece, 0, n));
      out.write(piece, 0, n);
      length += n;
    }

    return new FileDigest(name, length, digest.hex());
  }
}

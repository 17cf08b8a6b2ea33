package org.sparkfp4.keys;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Sha256;

/** Holds every byte of a layer's file to the checksums that its header and the cache's index have. */
final class CacheChecksums {
  private static final int PIECE = 1 << 20;
  private static final String SHA256 = "sha256:";

  private CacheChecksums() {}

  /** What differs, for people; empty where nothing does. */
  static String damage(CachedLayer layer, Configuration conf) throws IOException {
    Sha256 file = new Sha256();
    Sha256 tensors = new Sha256();
    Path path = new Path(layer.file());
    try (FSDataInputStream in = RawFileSystem.of(path, conf).open(path)) {
      byte[] piece = new byte[PIECE];
      long at = 0;
      for (int n = in.read(piece); n >= 0; n = in.read(piece)) {
        file.update(ByteBuffer.wrap(piece, 0, n));
        int header = (int) Math.min(n, Math.max(0, layer.dataStart() - at));
        tensors.update(ByteBuffer.wrap(piece, header, n - header));
        at += n;
      }
    }

    List<String> damage = new ArrayList<>();
    String recorded = layer.metadata().getOrDefault("checksum", "");
    if (!recorded.equals(SHA256 + tensors.hex())) {
      damage.add(recorded.isEmpty() ? "its header has no checksum" : "its tensors are not those of its checksum");
    }

    if (!layer.sha256().isEmpty() && !layer.sha256().equals(file.hex())) {
      damage.add("its bytes are not those that the index has the SHA-256 of");
    }

    return damage.isEmpty() ? "" : layer.file() + ": " + String.join(", ", damage);
  }
}

package org.sparkfp4.sink;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.plan.SourceFile;
import org.sparkfp4.safetensors.ChildPath;
import org.sparkfp4.safetensors.RawFileSystem;
import org.sparkfp4.safetensors.UnchangedFile;

/** Carries tensors over from the source byte for byte. Keeps the file that it read last open. */
final class SourceCopier implements Closeable {
  private final Path input;
  private final Map<String, SourceFile> sources;
  private final Configuration conf;
  private final byte[] piece = new byte[1 << 20];
  private String openName;
  private FSDataInputStream open;

  SourceCopier(WriteTarget target, Configuration conf) {
    this.input = new Path(target.input());
    this.sources = target.sources().stream().collect(Collectors.toMap(SourceFile::name, Function.identity()));
    this.conf = conf;
  }

  void copy(LocatedTensor tensor, ShardOutput out) throws IOException {
    FSDataInputStream in = open(tensor.file());
    for (long done = 0; done < tensor.length(); ) {
      int n = (int) Math.min(piece.length, tensor.length() - done);
      in.readFully(tensor.offset() + done, piece, 0, n);
      out.write(ByteBuffer.wrap(piece, 0, n));
      done += n;
    }
  }

  private FSDataInputStream open(String file) throws IOException {
    if (file.equals(openName)) {
      return open;
    }

    close();
    Path path = ChildPath.of(input, file);
    FileSystem fs = RawFileSystem.of(path, conf);
    SourceFile planned = sources.get(file);
    UnchangedFile.require(fs, path, planned.length(), planned.modified());
    open = fs.open(path);
    openName = file;
    return open;
  }

  @Override
  public void close() throws IOException {
    if (open != null) {
      open.close();
      open = null;
      openName = null;
    }
  }
}

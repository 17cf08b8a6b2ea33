package org.sparkfp4.source;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/** Writes small files, and large ones that are mostly holes. */
final class SafetensorsFixture {
  private final List<TensorInfo> tensors = new ArrayList<>();
  private long end;

  SafetensorsFixture add(String name, DType dtype, Long... shape) {
    long begin = end;
    end += dtype.bytes(List.of(shape).stream().reduce(1L, Math::multiplyExact));
    tensors.add(new TensorInfo(name, dtype, List.of(shape), begin, end));
    return this;
  }

  /** Writes the file with random data and gives the data. */
  byte[] write(Path file, long seed) throws IOException {
    byte[] data = new byte[Math.toIntExact(end)];
    new Random(seed).nextBytes(data);
    byte[] header = SafetensorsHeader.encode(tensors, SafetensorsHeader.FORMAT_PT);
    Files.write(file, header);
    Files.write(file, data, StandardOpenOption.APPEND);
    return data;
  }

  /** Writes the file as a hole but for its last bytes. */
  void writeSparse(Path file, byte[] last) throws IOException {
    byte[] header = SafetensorsHeader.encode(tensors, SafetensorsHeader.FORMAT_PT);
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW, StandardOpenOption.SPARSE)) {
      channel.write(ByteBuffer.wrap(header), 0);
      channel.write(ByteBuffer.wrap(last), header.length + end - last.length);
    }
  }

  /** The file as a partition sees it. */
  static SlabFile slabFile(Path file) throws IOException {
    return new SlabFile(file.toUri().toString(), Files.size(file), Files.getLastModifiedTime(file).toMillis());
  }
}

package org.sparkfp4.keys;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.files.Sha256;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;
import org.sparkfp4.sink.StagedFile;
import scala.collection.Iterator;

/** Puts the ranges of a layer together: its header, which has the checksum of what follows, then their bytes. */
final class LayerTask extends KeyTask<Integer> {
  /** A page of memory and of storage. */
  private static final int ALIGNMENT = 4096;

  private static final int PIECE = 1 << 20;

  private final String writer;

  /** @param writer the product's name and version */
  LayerTask(Broadcast<KeyPlan> plan, Broadcast<SerializableConfiguration> conf, TaskSettings settings, String writer) {
    super(plan, conf, settings);
    this.writer = writer;
  }

  /** Takes bytes as they are read. */
  private interface Sink {
    void take(byte[] bytes, int length) throws IOException;
  }

  @Override
  void write(TaskContext context, Iterator<Integer> ids) throws IOException {
    while (ids.hasNext()) {
      int id = ids.next();
      CacheLayer layer = plan().layers().get(id);
      Output output = output();
      Sha256 sha256 = new Sha256();
      read(output, layer, (bytes, length) -> sha256.update(ByteBuffer.wrap(bytes, 0, length)));
      int record = plan().record(id);
      try (StagedFile file = begin(output, record, layer.file(), false, context)) {
        file.write(ByteBuffer.wrap(header(layer, sha256.hex())));
        read(output, layer, (bytes, length) -> file.write(ByteBuffer.wrap(bytes, 0, length)));
        file.finish(record, plan().fingerprint());
      }
    }
  }

  private void read(Output output, CacheLayer layer, Sink sink) throws IOException {
    byte[] piece = new byte[PIECE];
    for (CacheRange range : plan().rangesOf(layer)) {
      long left = range.count() * plan().tensors().get(range.tensor()).unitBytes();
      try (FSDataInputStream in = output.storage().fs().open(new Path(parts(output.staging()), range.file()))) {
        while (left > 0) {
          int length = (int) Math.min(PIECE, left);
          in.readFully(piece, 0, length);
          sink.take(piece, length);
          left -= length;
        }
      }
    }
  }

  private byte[] header(CacheLayer layer, String checksum) {
    List<TensorInfo> infos = new ArrayList<>();
    long begin = 0;
    for (int tensor : layer.tensors()) {
      infos.add(plan().tensors().get(tensor).info(begin));
      begin = infos.get(infos.size() - 1).end();
    }

    CacheTensor keys = plan().tensors().get(layer.tensors().get(0));
    return SafetensorsHeader.encode(
        infos, CacheMetadata.of(plan().options(), keys, layer, writer, checksum), ALIGNMENT);
  }
}

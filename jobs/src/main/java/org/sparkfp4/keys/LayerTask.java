package org.sparkfp4.keys;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.files.Sha256;
import org.sparkfp4.output.StagedFile;
import org.sparkfp4.output.TaskFiles;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.output.WritingTask;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;
import scala.collection.Iterator;

/** Puts the ranges of a layer together: its header, which has the checksum of what follows, then their bytes. */
final class LayerTask extends WritingTask<KeyPlan, Integer> {
  /** A page of memory and of storage. */
  private static final int ALIGNMENT = 4096;

  private final String writer;

  /** @param writer the product's name and version */
  LayerTask(Broadcast<KeyPlan> plan, Broadcast<SerializableConfiguration> conf, TaskOutput output, String writer) {
    super(plan, conf, output);
    this.writer = writer;
  }

  @Override
  protected void write(TaskContext context, Iterator<Integer> ids, TaskFiles output) throws IOException {
    while (ids.hasNext()) {
      int id = ids.next();
      CacheLayer layer = plan().layers().get(id);
      Sha256 sha256 = new Sha256();
      read(output, layer, sha256::update);
      int record = plan().record(id);
      try (StagedFile file = output.begin(record, layer.file())) {
        file.write(ByteBuffer.wrap(header(layer, sha256.hex())));
        read(output, layer, file::write);
        output.finish(file, record, plan().fingerprint());
      }
    }
  }

  private void read(TaskFiles output, CacheLayer layer, TaskFiles.Pieces pieces) throws IOException {
    for (CacheRange range : plan().rangesOf(layer)) {
      long length = range.count() * plan().tensors().get(range.tensor()).unitBytes();
      output.readPart(range.file(), length, pieces);
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

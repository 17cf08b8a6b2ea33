package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.layouts.ExpertArrangement;
import org.sparkfp4.layouts.Fc;
import org.sparkfp4.layouts.StackPart;
import org.sparkfp4.output.BadSourceException;

/** Reads experts that are stacked and arranged for a runtime. */
final class StackReader implements ExpertReader {
  private final ExpertLayer layer;
  private final StoredExperts.Stack stored;
  private final SourceBytes source;
  private final Map<String, byte[]> globals = new HashMap<>();

  StackReader(ExpertLayer layer, StoredExperts.Stack stored, SourceBytes source) {
    this.layer = layer;
    this.stored = stored;
    this.source = source;
  }

  @Override
  public byte[][] codes(Fc fc, int expert) throws IOException {
    ExpertArrangement arrangement = stored.layout().arrangement(layer.shape(), fc);
    StackPart part = fc == Fc.FC1 ? StackPart.FC1_CODES : StackPart.FC2_CODES;
    return source.arranger().restoredCodes(arrangement, source.part(tensor(part), expert, arrangement.codeBytes()));
  }

  @Override
  public byte[][] scales(Fc fc, int expert) throws IOException {
    ExpertArrangement arrangement = stored.layout().arrangement(layer.shape(), fc);
    LocatedTensor tensor = tensor(fc == Fc.FC1 ? StackPart.FC1_SCALES : StackPart.FC2_SCALES);
    byte[][] members =
        source.arranger().restoredScales(arrangement, source.part(tensor, expert, arrangement.scaleBytes()));
    for (int m = 0; m < members.length; m++) {
      String module = layer.module(expert, layer.shape().projection(fc, m));
      source.requireScales("expert " + expert + " (" + module + ") of " + tensor.name(), tensor, members[m], 0,
          layer.shape().cols(fc));
    }

    return members;
  }

  private LocatedTensor tensor(StackPart part) {
    return stored.tensors().get(stored.layout().parts().indexOf(part));
  }

  @Override
  public GlobalScale global(int expert, int projection) throws IOException {
    boolean isDown = projection == layer.projections().size() - 1;
    LocatedTensor tensor = tensor(isDown ? StackPart.FC2_GLOBAL : StackPart.FC1_GLOBAL);
    String name = layer.module(expert, projection) + " in " + tensor.file();
    GlobalScale scale = SourceBytes.usable(stored.globals().get(projection).get(expert), name);
    requireStored(tensor, expert, scale, name);
    return scale;
  }

  /** The runtime reads the tensor, a conversion the metadata: they must say the same. */
  private void requireStored(LocatedTensor tensor, int expert, GlobalScale scale, String name) throws IOException {
    byte[] all = globals.get(tensor.name());
    if (all == null) {
      all = source.unrecorded().all(tensor);
      globals.put(tensor.name(), all);
    }

    int bytes = all.length / layer.shape().experts();
    ByteBuffer expected = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    stored.layout().putGlobal(expected, scale.multiplier());
    if (!expected.flip().equals(ByteBuffer.wrap(all, expert * bytes, bytes))) {
      throw new BadSourceException("Cannot convert " + name + ": its global scale in " + tensor.name()
          + " is not that of the file's metadata; one of them was changed, convert the checkpoint anew from its"
          + " source");
    }
  }

  @Override
  public GlobalScale input(int expert, int projection) {
    List<GlobalScale> inputs = stored.inputs().get(projection);
    return inputs.isEmpty()
        ? null
        : SourceBytes.usable(inputs.get(expert), "the activations of " + layer.module(expert, projection)
            + " in the metadata of " + tensor(StackPart.FC1_CODES).file());
  }
}

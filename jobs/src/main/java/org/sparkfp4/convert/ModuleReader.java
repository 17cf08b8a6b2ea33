package org.sparkfp4.convert;

import java.io.IOException;
import java.util.List;
import org.sparkfp4.layouts.Fc;

/** Reads experts whose matrices are stored each by itself. */
final class ModuleReader implements ExpertReader {
  private final ExpertLayer layer;
  private final StoredExperts.Modules stored;
  private final SourceBytes source;
  private Scalars scalars;

  ModuleReader(ExpertLayer layer, StoredExperts.Modules stored, SourceBytes source) {
    this.layer = layer;
    this.stored = stored;
    this.source = source;
  }

  private QuantizedLinear linear(Fc fc, int expert, int member) {
    return stored.experts().get(expert).get(layer.shape().projection(fc, member));
  }

  @Override
  public byte[][] codes(Fc fc, int expert) throws IOException {
    byte[][] members = new byte[layer.shape().members(fc)][];
    for (int m = 0; m < members.length; m++) {
      members[m] = source.all(linear(fc, expert, m).codes());
    }

    return members;
  }

  @Override
  public byte[][] scales(Fc fc, int expert) throws IOException {
    byte[][] members = new byte[layer.shape().members(fc)][];
    for (int m = 0; m < members.length; m++) {
      QuantizedLinear linear = linear(fc, expert, m);
      members[m] = source.all(linear.scales());
      source.requireScales(linear.scales().name(), linear.scales(), members[m], 0, layer.shape().cols(fc));
    }

    return members;
  }

  @Override
  public GlobalScale global(int expert, int projection) throws IOException {
    return scalars().global(stored.experts().get(expert).get(projection));
  }

  @Override
  public GlobalScale input(int expert, int projection) throws IOException {
    return scalars().input(stored.experts().get(expert).get(projection));
  }

  /** Those of all experts, read when the first is asked for. */
  private Scalars scalars() throws IOException {
    if (scalars == null) {
      scalars = source.scalars(stored.experts().stream().flatMap(List::stream).toList());
    }

    return scalars;
  }
}

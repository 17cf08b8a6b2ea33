package org.sparkfp4.convert;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.layouts.ExpertShape;
import org.sparkfp4.layouts.Fc;

/**
 * All routed experts of a layer.
 *
 * @param path what their names begin with, such as {@code model.layers.3.mlp.experts}
 * @param projections what the matrices of an expert are called: gate, up and down, or up and down
 * @param shape their sizes
 * @param bias what the router adds to an expert's score, or null
 * @param stored where their bytes are
 */
record ExpertLayer(
    String path, List<String> projections, ExpertShape shape, LocatedTensor bias, StoredExperts stored)
    implements Serializable {
  ExpertLayer {
    projections = List.copyOf(projections);
  }

  /** The module of an expert's projection. */
  String module(int expert, int projection) {
    return path + "." + expert + "." + projections.get(projection);
  }

  /** The modules of an expert and their sizes, gate first, down last. */
  List<LinearShape> modules(int expert) {
    List<LinearShape> modules = new ArrayList<>();
    for (int p = 0; p < projections.size(); p++) {
      Fc fc = p == projections.size() - 1 ? Fc.FC2 : Fc.FC1;
      modules.add(new LinearShape(module(expert, p), shape.rows(fc), shape.cols(fc)));
    }

    return modules;
  }
}

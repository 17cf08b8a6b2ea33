package org.sparkfp4.convert;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.layouts.ExpertLayout;

/**
 * What a checkpoint is to become.
 *
 * @param target name of a layout
 * @param initializerNames a container of an existing export, whose names are taken; or null
 * @param maxFileBytes above which a file has one item only; 0 for a size that the model gives
 */
public record ConvertRequest(String target, String initializerNames, long maxFileBytes) {
  public ConvertRequest {
    if (!ConvertPlanner.isLayout(target)) {
      throw new IllegalArgumentException("Invalid layout: " + target + "; known are " + ConvertPlanner.layouts());
    }

    if (initializerNames != null && ExpertLayout.named(target).filter(ExpertLayout::isExternal).isEmpty()) {
      throw new IllegalArgumentException("Invalid --initializer-names: in layout " + target
          + " no tensors are initializers of an export; leave it out");
    }
  }

  ConvertPlanner planner(SourceModel model, Configuration conf) throws IOException {
    InitializerNames names =
        initializerNames == null ? InitializerNames.byPath() : InitializerNames.ofExport(conf, initializerNames);
    return new ConvertPlanner(model, target, names, maxFileBytes);
  }
}

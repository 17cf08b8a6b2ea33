package org.sparkfp4.source;

import java.io.IOException;
import java.nio.MappedByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.sparkfp4.files.SourceChangedException;

/** The mapped slabs of a task, and whether all of them were what their files held. */
final class MappedSlabs {
  // from those that can still be read to their files
  private final Map<MappedSlab, String> live = new ConcurrentHashMap<>();
  private final AtomicReference<String> faulted = new AtomicReference<>();

  MappedSlab slab(String file, MappedByteBuffer mapping) {
    MappedSlab slab = new MappedSlab(mapping, this::release);
    live.put(slab, file);
    return slab;
  }

  private void release(MappedSlab slab) {
    String file = live.remove(slab);
    if (slab.hasFaulted()) {
      faulted.set(file);
    }
  }

  /**
   * Asserts that whatever was read from slabs so far was the files' own.
   *
   * @throws SourceChangedException naming a file of which some was not
   */
  void requireIntact() throws IOException {
    String file = faulted.get();
    for (Map.Entry<MappedSlab, String> slab : live.entrySet()) {
      if (slab.getKey().hasFaulted()) {
        file = slab.getValue();
      }
    }

    if (file != null) {
      throw new SourceChangedException(
          file, "bytes of it were gone when they were read: it was shortened, or its storage failed");
    }
  }
}

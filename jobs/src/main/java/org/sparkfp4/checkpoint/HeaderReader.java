package org.sparkfp4.checkpoint;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.sparkfp4.safetensors.SafetensorsHeader;

/** Reads the headers of many shards at once: on object stores each costs a round trip. */
public final class HeaderReader {
  private static final int THREADS = 16;

  private HeaderReader() {}

  /** The headers in the order of the shards; of several bad ones the first is reported. */
  public static List<SafetensorsHeader> read(FileSystem fileSystem, List<FileStatus> shards) throws IOException {
    ExecutorService pool = Executors.newFixedThreadPool(Math.min(THREADS, shards.size()), HeaderReader::thread);
    try {
      List<Future<SafetensorsHeader>> reads = new ArrayList<>();
      for (FileStatus shard : shards) {
        reads.add(pool.submit(() -> SafetensorsHeader.read(fileSystem, shard)));
      }

      List<SafetensorsHeader> headers = new ArrayList<>();
      for (Future<SafetensorsHeader> read : reads) {
        headers.add(read.get());
      }

      return headers;
    } catch (ExecutionException e) {
      if (e.getCause() instanceof IOException cause) {
        throw cause;
      }

      throw new IllegalStateException("Cannot read the headers of " + shards.size() + " shards", e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("Cannot read the headers of " + shards.size() + " shards: interrupted");
    } finally {
      pool.shutdownNow();
    }
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "safetensors-headers");
    thread.setDaemon(true);
    return thread;
  }
}

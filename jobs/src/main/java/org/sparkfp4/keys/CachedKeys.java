package org.sparkfp4.keys;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.InvalidSafetensorsException;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/** Reads the keys of one layer back from a cache, page by page. */
public final class CachedKeys implements Closeable {
  private final CachedLayer layer;
  private final FSDataInputStream in;
  private byte[] bytes;
  private long current = -1;

  /** Opens a layer's file. */
  public CachedKeys(CachedLayer layer, Configuration conf) throws IOException {
    this.layer = layer;
    Path path = new Path(layer.file());
    this.in = RawFileSystem.of(path, conf).open(path);
  }

  /** Whether a folder or a file is a cache, by its index or its header. */
  public static boolean isCache(Configuration conf, String folder) throws IOException {
    Path path = new Path(folder);
    FileSystem fs = RawFileSystem.of(path, conf);
    try {
      return fs.getFileStatus(path).isFile()
          ? CacheMetadata.FORMAT.equals(SafetensorsHeader.read(fs, path).metadata().get("format"))
          : fs.exists(new Path(path, KeyFolder.INDEX));
    } catch (FileNotFoundException | InvalidSafetensorsException e) {
      // for whoever reads it as something else to complain about
      return false;
    }
  }

  /**
   * The layers of a cache, by its headers.
   *
   * @param folder a finished cache, or one file of it
   * @throws InvalidKeysException if it is none
   */
  public static List<CachedLayer> layers(Configuration conf, String folder) throws IOException {
    Path path = new Path(folder);
    FileSystem fs = RawFileSystem.of(path, conf);
    if (!isCache(conf, folder)) {
      throw new InvalidKeysException("Invalid cache: " + folder + " has no " + KeyFolder.INDEX
          + "; it is no cache of keys, or the run that makes it has not ended");
    }

    List<KeyFolder.IndexedFile> files = fs.getFileStatus(path).isFile()
        ? List.of(new KeyFolder.IndexedFile(fs.getFileStatus(path), ""))
        : new KeyFolder(fs, path).indexed();
    List<CachedLayer> layers = new ArrayList<>();
    for (KeyFolder.IndexedFile file : files) {
      layers.add(layer(file, SafetensorsHeader.read(fs, file.status())));
    }

    return layers;
  }

  private static CachedLayer layer(KeyFolder.IndexedFile file, SafetensorsHeader header) {
    String path = file.status().getPath().toString();
    for (TensorInfo tensor : header.tensors()) {
      if (tensor.name().endsWith(KeyPlanner.KEYS)) {
        List<Long> shape = tensor.shape();
        if (tensor.dtype() != DType.U8 || shape.size() != 3 || shape.get(1) < 1 || shape.get(2) < 1
            || shape.get(2) % 17 != 0 || shape.get(2) > Integer.MAX_VALUE / shape.get(1)) {
          throw new InvalidKeysException("Invalid cache file " + path + ": " + tensor.name() + " is " + tensor.dtype()
              + " " + shape + ", must be U8 [pages, tokens, D / 2 + D / 32] with pages of less than 2 GiB");
        }

        KeyPage page = new KeyPage(Math.toIntExact(shape.get(1)), Math.toIntExact(shape.get(2) * 32 / 17));
        String name = tensor.name().substring(0, tensor.name().length() - KeyPlanner.KEYS.length());
        return new CachedLayer(name, path, file.sha256(), header.dataStart(), header.dataStart() + tensor.begin(),
            shape.get(0), page, new HashMap<>(header.metadata()));
      }
    }

    throw new InvalidKeysException("Invalid cache file " + path + ": it has no tensor called LAYER" + KeyPlanner.KEYS);
  }

  /** The image of a page; valid until the next call. */
  public ByteBuffer page(long number) throws IOException {
    if (number < 0 || number >= layer.pages()) {
      throw new InvalidKeysException(
          "Invalid page of " + layer.name() + ": " + number + ", it has " + layer.pages() + " pages");
    }

    if (bytes == null) {
      // only now: a file may say that it has no pages, and that those are of any size
      bytes = new byte[layer.page().bytes()];
    }

    if (number != current) {
      in.readFully(layer.offset() + number * layer.page().bytes(), bytes, 0, bytes.length);
      current = number;
    }

    return ByteBuffer.wrap(bytes);
  }

  /** The values of the key in a slot; zeros where no token has it. */
  public void decode(long slot, float[] out) throws IOException {
    layer.page().decode(page(slot / layer.page().tokens()), layer.page().bytes(), slot % layer.page().tokens(), out);
  }

  @Override
  public void close() throws IOException {
    in.close();
  }
}

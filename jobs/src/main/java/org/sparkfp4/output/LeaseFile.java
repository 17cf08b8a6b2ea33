package org.sparkfp4.output;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.Utf8Json;

/** A file with a lease, which several runs may try to make at once. */
record LeaseFile(FileSystem fs, Path path) {
  static final Duration BETWEEN_ATTEMPTS = Duration.ofMillis(50);

  /** {@code Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE} of Hadoop 3.4.2, in S3A. */
  private static final String IF_ABSENT = "fs.option.create.conditional.overwrite";

  private static final ObjectMapper JSON = new ObjectMapper();

  /** Makes the file, unless there is one. */
  boolean create(Lease lease) throws IOException {
    byte[] content = JSON.writeValueAsBytes(lease);
    boolean local = fs.getUri().getScheme().equals("file");
    makeFolder(local);
    try {
      if (local) {
        // Hadoop's local file system asks whether the file exists and then creates it, which two runs can do at once
        Files.write(java.nio.file.Path.of(path.toUri().getPath()), content, StandardOpenOption.CREATE_NEW);
      } else {
        // Stores look whether an object exists and write it when the stream closes. Those that can look again then are
        // asked to; where Hadoop or the store does not know the option it goes for nothing.
        FSDataOutputStreamBuilder<?, ?> absent = fs.createFile(path);
        absent.overwrite(false);
        absent.opt(IF_ABSENT, true);
        try (FSDataOutputStream out = absent.build()) {
          out.write(content);
        }
      }

      return true;
    } catch (FileAlreadyExistsException | java.nio.file.FileAlreadyExistsException e) {
      return false;
    } catch (IOException e) {
      // file systems differ in what they throw for a file that exists
      if (fs.exists(path)) {
        return false;
      }

      throw unwritable(e);
    }
  }

  /** Hadoop's local file system does not say why it made no folder. */
  private void makeFolder(boolean local) throws IOException {
    Path folder = path.getParent();
    try {
      if (local) {
        Files.createDirectories(java.nio.file.Path.of(folder.toUri().getPath()));
      } else {
        fs.mkdirs(folder);
      }
    } catch (IOException e) {
      throw unwritable(e);
    }
  }

  private IOException unwritable(IOException cause) {
    Path folder = path.getParent();
    return new IOException(
        "Cannot write to " + folder.getParent() + ": its folder " + folder.getName() + " cannot be made or written to ("
            + cause + "); choose another folder, or mend this one",
        cause);
  }

  /** The lease in the file; null when there is none any more or its holder died while it wrote it. */
  Lease read() throws IOException {
    try {
      for (int attempt = 0; attempt < 20; attempt++) {
        try (InputStream in = fs.open(path)) {
          return JSON.readValue(Utf8Json.reader(in), Lease.class);
        } catch (JsonProcessingException e) {
          // its holder may be just about to write it
          pause(BETWEEN_ATTEMPTS);
        }
      }
    } catch (FileNotFoundException e) {
      return null;
    }

    return null;
  }

  /** Puts a lease in the place of the one that is there. */
  void write(Lease lease) throws IOException {
    try (FSDataOutputStream out = fs.create(path, true)) {
      out.write(JSON.writeValueAsBytes(lease));
    }
  }

  /** Lets other runs go on. */
  void pause(Duration time) throws IOException {
    try {
      Thread.sleep(time.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("Cannot lock " + path + ": interrupted", e);
    }
  }
}

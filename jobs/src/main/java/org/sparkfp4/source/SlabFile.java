package org.sparkfp4.source;

import java.io.Serializable;

/**
 * A file that slabs lie in, as the driver or the plan saw it.
 *
 * @param path its qualified path
 * @param length its bytes
 * @param modified its modification time, milliseconds since the epoch
 */
public record SlabFile(String path, long length, long modified) implements Serializable {}

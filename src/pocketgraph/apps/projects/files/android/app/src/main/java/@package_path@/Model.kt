package @package@

import android.content.Context
import android.content.res.AssetManager
import android.graphics.Bitmap
import java.io.FileInputStream
import java.io.FileNotFoundException
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel
import kotlin.math.round
import org.tensorflow.lite.DataType
import org.tensorflow.lite.Interpreter
import org.tensorflow.lite.Tensor

/** A class of a classifier, and its score. */
data class Recognition(val index: Int, val title: String, val score: Float)

/** The model: feeds arrays or pictures, and gives arrays or classes. One thread at a time may use it. */
class Model(context: Context, threads: Int = 4) : AutoCloseable {
    private val interpreter = Interpreter(mapped(context.assets, FILE), Interpreter.Options().setNumThreads(threads))

    /** The name of each class; empty where there are none. */
    val labels: List<String> = lines(context.assets, "labels.txt")

    init {
        INPUT_PLACES.forEachIndexed { index, place -> interpreter.resizeInput(place, INPUT_SHAPES[index]) }
        interpreter.allocateTensors()
    }

    private val entering = INPUT_PLACES.map { buffer(interpreter.getInputTensor(it)) }
    private val leaving = OUTPUT_PLACES.map { buffer(interpreter.getOutputTensor(it)) }

    /** Where an input's bytes go before [run]. */
    fun input(index: Int): ByteBuffer = entering[index].apply { rewind() }

    /** An output's bytes after [run]. */
    fun output(index: Int): ByteBuffer = leaving[index].apply { rewind() }

    /** The numbers of an output after [run]; codes as what they stand for. */
    fun numbers(index: Int): FloatArray = numbers(interpreter.getOutputTensor(OUTPUT_PLACES[index]), output(index))

    /** Runs the model; gives back the milliseconds that it took. */
    fun run(): Double {
        val inputs = Array<Any>(entering.size) { place -> input(INPUT_PLACES.indexOf(place)) }
        val outputs = OUTPUT_PLACES.withIndex().associate { (index, place) -> place to (output(index) as Any) }
        val begun = System.nanoTime()
        interpreter.runForMultipleInputsOutputs(inputs, outputs)
        return (System.nanoTime() - begun) / 1e6
    }

    /** Feeds the middle square of a picture. */
    fun feed(picture: Bitmap) {
        val side = minOf(picture.width, picture.height)
        val square = Bitmap.createBitmap(picture, (picture.width - side) / 2, (picture.height - side) / 2, side, side)
        val small = Bitmap.createScaledBitmap(square, WIDTH, HEIGHT, true)
        val pixels = IntArray(WIDTH * HEIGHT)
        small.getPixels(pixels, 0, WIDTH, 0, 0, WIDTH, HEIGHT)
        val tensor = interpreter.getInputTensor(INPUT_PLACES[0])
        val to = input(0)
        for (pixel in pixels) {
            val red = (pixel shr 16) and 0xff
            val green = (pixel shr 8) and 0xff
            val blue = pixel and 0xff
            if (CHANNELS == 1) {
                put(to, tensor, round(0.299f * red + 0.587f * green + 0.114f * blue), 0)
            } else {
                put(to, tensor, red.toFloat(), 0)
                put(to, tensor, green.toFloat(), 1)
                put(to, tensor, blue.toFloat(), 2)
            }
        }
    }

    private fun put(to: ByteBuffer, tensor: Tensor, value: Float, channel: Int) {
        val scaled = (value - MEAN[channel]) / STD[channel]
        if (tensor.dataType() == DataType.FLOAT32) {
            to.putFloat(scaled)
            return
        }
        val how = tensor.quantizationParams()
        val code = round(if (how.scale == 0f) scaled else scaled / how.scale).toInt() + how.zeroPoint
        to.put((if (tensor.dataType() == DataType.INT8) code.coerceIn(-128, 127) else code.coerceIn(0, 255)).toByte())
    }

    /** Whether all scores so far were from 0 to 1; logits are not, of which a small one means nothing. */
    private var areShares = true

    /** The classes of the highest scores after [run], best first: of shares those over the threshold, or one, of logits any. */
    fun best(count: Int = 3, threshold: Float = 0.1f): List<Recognition> {
        val given = numbers(0)
        // One score is the share of the second of two classes.
        val scores = if (given.size == 1 && labels.size == 2) floatArrayOf(1f - given[0], given[0]) else given
        areShares = areShares && scores.none { it < 0f || it > 1.001f } // rounding makes shares a little larger than 1
        val least = if (areShares) threshold else Float.NEGATIVE_INFINITY
        return scores.indices.sortedByDescending { scores[it] }.take(count)
            .filterIndexed { place, it -> place == 0 || scores[it] > least } // of a thousand classes often none is
            .map { Recognition(it, labels.getOrElse(it) { index -> "class $index" }, scores[it]) }
    }

    override fun close() = interpreter.close()

    companion object {
        const val FILE = "model.tflite"
        const val WIDTH = @width@
        const val HEIGHT = @height@
        const val CHANNELS = @channels@
        const val GIVES_SCORES = @gives_scores@

        /** The difference that the test allows, as a share of an output's largest element: the largest, or the mean. */
        const val TOLERANCE = @tolerance@
        const val BY_MEAN = @by_mean@

        /** How values of pictures, from 0 to 255, are fed: (value - mean) / std, by channel. */
        val MEAN = floatArrayOf(@mean@)
        val STD = floatArrayOf(@std@)

        val INPUTS = listOf(@inputs@)
        val OUTPUTS = listOf(@outputs@)
        val INPUT_SHAPES = listOf(@input_shapes@)

        /** Which of the file's inputs and outputs each of these is. */
        val INPUT_PLACES = intArrayOf(@input_places@)
        val OUTPUT_PLACES = intArrayOf(@output_places@)

        /** A file of the assets, mapped into memory. */
        fun mapped(assets: AssetManager, name: String): ByteBuffer =
            assets.openFd(name).use { file ->
                FileInputStream(file.fileDescriptor).use {
                    it.channel.map(FileChannel.MapMode.READ_ONLY, file.startOffset, file.declaredLength)
                }
            }

        /** The numbers of a tensor's bytes. */
        fun numbers(tensor: Tensor, bytes: ByteBuffer, count: Int = tensor.numElements()): FloatArray {
            val how = tensor.quantizationParams()
            val scale = if (how.scale == 0f) 1f else how.scale
            return FloatArray(count) {
                when (tensor.dataType()) {
                    DataType.FLOAT32 -> bytes.getFloat(4 * it)
                    DataType.INT32 -> bytes.getInt(4 * it).toFloat()
                    DataType.INT64 -> bytes.getLong(8 * it).toFloat()
                    DataType.INT8 -> scale * (bytes.get(it) - how.zeroPoint)
                    DataType.UINT8 -> scale * ((bytes.get(it).toInt() and 0xff) - how.zeroPoint)
                    DataType.BOOL -> bytes.get(it).toFloat()
                    else -> throw IllegalStateException("numbers of ${tensor.dataType()}")
                }
            }
        }

        private fun buffer(tensor: Tensor): ByteBuffer =
            ByteBuffer.allocateDirect(tensor.numBytes()).order(ByteOrder.nativeOrder())

        private fun lines(assets: AssetManager, name: String): List<String> =
            try {
                assets.open(name).bufferedReader().use { it.readLines() }
            } catch (missing: FileNotFoundException) {
                emptyList()
            }
    }
}

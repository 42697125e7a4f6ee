import Foundation
// Signatures after tensorflow/lite/swift/Sources. Each run is one of LiteRT's in Python, by run_tflite.py.
public struct QuantizationParameters: Equatable, Hashable { public let scale: Float; public let zeroPoint: Int }
public struct Tensor: Equatable, Hashable {
    public let name: String, dataType: DataType, shape: Shape, data: Data, quantizationParameters: QuantizationParameters?
    public enum DataType: String, Equatable, Hashable { case bool, uInt8 = "uint8", int16, int32, int64, float16, float32, float64 }
    public struct Shape: Equatable, Hashable, ExpressibleByArrayLiteral { public let rank: Int; public let dimensions: [Int]
        public init(_ dimensions: [Int]) { rank = dimensions.count; self.dimensions = dimensions }
        public init(_ elements: Int...) { self.init(elements) }
        public init(arrayLiteral: Int...) { self.init(arrayLiteral) } }
}
public class Delegate {}
public enum InterpreterError: Error { case invalidTensorIndex, invalidTensorDataType, invalidTensorDataCount(provided: Int, required: Int), failed(String) }
struct Told: Codable { let type: String; let shape: [Int]; let scale: Float; let zero: Int }
struct Answer: Codable { let inputs: [Told]; let outputs: [Told] }
public final class Interpreter {
    public struct Options: Equatable, Hashable { public var threadCount: Int? = nil; public var isXNNPackEnabled = false; public init() {} }
    let path: String, folder = NSTemporaryDirectory() + "/tfl_\(ProcessInfo.processInfo.processIdentifier)_" + UUID().uuidString
    var shapes: [Int: [Int]] = [:], answer: Answer? = nil, fed: [Int: Data] = [:]
    public init(modelPath: String, options: Options? = nil, delegates: [Delegate]? = nil) throws {
        path = modelPath
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }
    public func resizeInput(at index: Int, to shape: Tensor.Shape) throws { shapes[index] = shape.dimensions }
    func call() throws {
        let said = try JSONSerialization.data(withJSONObject: Dictionary(uniqueKeysWithValues: shapes.map { ("\($0.key)", $0.value) }))
        try said.write(to: URL(fileURLWithPath: folder + "/shapes.json"))
        for (index, data) in fed { try data.write(to: URL(fileURLWithPath: folder + "/in_\(index).bin")) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: ProcessInfo.processInfo.environment["PYTHON"]!)
        process.arguments = [ProcessInfo.processInfo.environment["RUN_TFLITE"]!, path, folder]
        try process.run(); process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw InterpreterError.failed("python") }
        answer = try JSONDecoder().decode(Answer.self, from: Data(contentsOf: URL(fileURLWithPath: folder + "/told.json")))
    }
    public func allocateTensors() throws { try call() }
    func tensor(_ told: Told, _ name: String) throws -> Tensor {
        guard let type = Tensor.DataType(rawValue: told.type) else { throw InterpreterError.invalidTensorDataType }
        let data = (try? Data(contentsOf: URL(fileURLWithPath: folder + "/\(name).bin"))) ?? Data()
        return Tensor(name: name, dataType: type, shape: Tensor.Shape(told.shape), data: data,
            quantizationParameters: told.scale == 0 ? nil : QuantizationParameters(scale: told.scale, zeroPoint: told.zero))
    }
    public func input(at index: Int) throws -> Tensor { try tensor(answer!.inputs[index], "in_\(index)") }
    public func output(at index: Int) throws -> Tensor { try tensor(answer!.outputs[index], "out_\(index)") }
    @discardableResult public func copy(_ data: Data, toInputAt index: Int) throws -> Tensor { fed[index] = data; return try input(at: index) }
    public func invoke() throws { try call() }
}
